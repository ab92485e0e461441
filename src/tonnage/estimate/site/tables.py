"""The table of kept runs, in the words that SQLite and PostgreSQL have in common."""

MAKE = """
CREATE TABLE IF NOT EXISTS tonnage_runs (
  id VARCHAR(200) NOT NULL PRIMARY KEY,
  day VARCHAR(10) NOT NULL,
  version VARCHAR(40) NOT NULL,
  question_row TEXT NOT NULL,
  compared TEXT NOT NULL)
"""
COLUMNS = "id, day, version, question_row, compared"
MAKE_CHOSEN = """
CREATE TABLE IF NOT EXISTS tonnage_chosen_factors (
  quantities VARCHAR(200) NOT NULL PRIMARY KEY,
  chosen TEXT NOT NULL)
"""
