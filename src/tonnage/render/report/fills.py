"""What the parts of bars are filled with: colours and hatching, as colour never stands alone."""

from msgspec import Struct


class Fill(Struct, frozen=True):
    """Colours on light and on dark ground; `hatch` names the marks on it, drawn in squares of `size` pixels that are
    turned by so many degrees.
    """

    light: str
    dark: str
    hatch: str = ""
    size: int = 8
    turn: int = 0


FILLS = {
    "weights": Fill("#1d4f7c", "#5b93cc"),
    "gradients": Fill("#3d8bc0", "#8cc7ec", "bar", 7, 45),
    "optimizer": Fill("#85508f", "#c08bca", "dots", 6),
    "activations": Fill("#b9641c", "#e39450", "lines", 6),
    "temporary": Fill("#8f7a17", "#cdb44c", "grid", 5, 45),
    "comm": Fill("#b03a5b", "#ec8ba6", "bar", 5),
    "kv": Fill("#23807a", "#55b8ae", "bar", 7, -45),
    "overhead": Fill("#66727a", "#97a4ab"),
    "forward": Fill("#7896ad", "#496a83"),
    "backward": Fill("#2d4c64", "#9cc0da", "lines", 6),
    "exchange": Fill("#23807a", "#55b8ae", "bar", 7, -45),
    "update": Fill("#85508f", "#c08bca", "dots", 6),
    "rest": Fill("#66727a", "#97a4ab", "bar", 7, 45),
}
