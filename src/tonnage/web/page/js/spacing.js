/* A blank stands between a Han character and a Latin letter or digit, and none between two Han characters. A translation cannot know which
   of the two its values are, so the rule is kept where a value is put in: as tonnage.language.spacing keeps it. */

export const WIDE = /[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]/u;
const HAN_BLANK = /[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef] $/u;
const BLANK_HAN = /^ [\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]/u;
const [ENDS_HAN, HAN] = [/[\u4e00-\u9fff]$/u, /^[\u4e00-\u9fff]/u];
const [ENDS_LATIN, LATIN] = [/[A-Za-z0-9]['`]?$/u, /^(?:['`]?[A-Za-z0-9$]|--?[A-Za-z0-9])/u];

/** The pieces of a text and its values, with the blanks that their neighbours ask for. */
export function joined(pieces) {
  let [made, before] = ["", ""];
  for (const piece of pieces.map(String).filter(Boolean)) {
    if (!before || [before, piece].includes(" ")) made += piece; // a blank alone parts two values
    else if (HAN_BLANK.test(made) && WIDE.test(piece[0])) made = made.slice(0, -1) + piece;
    else if (WIDE.test(made.at(-1)) && BLANK_HAN.test(piece)) made += piece.slice(1);
    else if ((ENDS_HAN.test(made) && LATIN.test(piece)) || (ENDS_LATIN.test(made) && HAN.test(piece))) made += ` ${piece}`;
    else made += piece;
    before = piece;
  }
  return made;
}
