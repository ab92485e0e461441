"""The tables of saved plans. A change of them is a new VERSION, with a step in migrations.py that brings older
tables to it.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
    text,
    true,
)

from tonnage.web.store.names import NAME_LENGTH

VERSION = 2
SUBJECT_LENGTH = 200  # characters of a model, a machine or a method in a list; longer ones are left out of it
TABLES = MetaData()

# One row: the version of these tables.
SCHEMA = Table("tonnage_schema", TABLES, Column("version", Integer, nullable=False))

# A name: its latest version, whether it was deleted, and how many bytes all its versions count against the limit.
# Versions of a deleted name stay.
PLANS = Table(
    "tonnage_plans",
    TABLES,
    Column("id", Integer, primary_key=True),
    Column("name", String(NAME_LENGTH), nullable=False, unique=True),
    Column("version", Integer, nullable=False),
    Column("deleted", Boolean, nullable=False, server_default=false()),
    Column("bytes", BigInteger, nullable=False, server_default=text("0")),
)

# A version: what it is about, and of its answer what shows how it changes. Rows are added; the figures of an answer are
# filled in once.
VERSIONS = Table(
    "tonnage_plan_versions",
    TABLES,
    Column("id", Integer, primary_key=True),
    Column("plan", Integer, ForeignKey(PLANS.c.id, ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("saved", String(32), nullable=False),  # when, in UTC
    Column("tonnage", String(32), nullable=False),  # the version that answered
    Column("verb", String(16), nullable=False),
    Column("command", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("needed_bytes", BigInteger),
    Column("usable_bytes", BigInteger),
    Column("usd", Float),
    Column("usd_of", Text),
    Column("answered", Boolean, nullable=False, server_default=true()),  # whether status, answer and figures are there
    Column("bytes", BigInteger, nullable=False, server_default=text("0")),
    Column("model", String(SUBJECT_LENGTH)),  # of the question, where they are short texts
    Column("machine", String(SUBJECT_LENGTH)),
    Column("method", String(SUBJECT_LENGTH)),
    Index("tonnage_plan_versions_once", "plan", "version", unique=True),
)

# The question of a version, as JSON. It may hold a whole config.json: lists do not read it.
QUESTIONS = Table(
    "tonnage_plan_questions",
    TABLES,
    Column("version", Integer, ForeignKey(VERSIONS.c.id, ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("question", Text, nullable=False),
)
SUMMARY = (
    "saved",
    "tonnage",
    "verb",
    "model",
    "machine",
    "method",
    "status",
    "answer",
    "needed_bytes",
    "usable_bytes",
    "usd",
    "usd_of",
    "bytes",
)
