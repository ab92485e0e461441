"""Records the program of rule E5 under the profiles that the rule shows, into src/tonnage/trace/data/. Needs the extra
`trace`.

python scripts/record_e5.py
"""

from pathlib import Path

from tonnage.trace.e5 import VARIANTS, file_of
from tonnage.trace.record.user import record_file

PACKAGE = Path(__file__).parents[1] / "src" / "tonnage" / "trace"


def main(folder: Path = PACKAGE / "data") -> None:
    for variant in VARIANTS:
        recording = record_file(
            f"{PACKAGE / 'programs' / 'linear_relu.py'}:program",
            "meta",
            variant.profile,
            steps=1,
            arguments=variant.arguments,
        )
        recording.program = f"tonnage/trace/programs/linear_relu.py:program, {variant.name}"
        path = folder / file_of(variant)
        recording.save(path)
        print(path.name, path.stat().st_size, "bytes,", len(recording.events), "events")


if __name__ == "__main__":
    main()
