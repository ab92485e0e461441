"""Readers of published measurements in the words of their sources, and the recipes of those sources: they write rows in
tonnage's own form.

`python scripts/rows FILE...` prints the rows of these files (form: validation/sources/README.md) as rows of
docs/rows.md; a row that no reader can turn into a question is kept with its reason. `make rows` rebuilds
validation/*.yaml from validation/sources/*.yaml.
"""
