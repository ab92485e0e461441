"""What is written down of a saved plan."""

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

from tonnage.web.store.names import NAME_LENGTH

TABLES = MetaData()

# One row: the version of these tables.
SCHEMA = Table("tonnage_schema", TABLES, Column("version", Integer, nullable=False))

# A name: its latest version, and whether it was deleted. Its versions stay.
PLANS = Table(
    "tonnage_plans", TABLES,
    Column("id", Integer, primary_key=True),
    Column("name", String(NAME_LENGTH), nullable=False, unique=True),
    Column("version", Integer, nullable=False),
    Column("deleted", Boolean, nullable=False, default=False),
)  # fmt: skip

# A version: the question, and of its answer what shows how it changes. Rows are added, and never changed.
VERSIONS = Table(
    "tonnage_plan_versions", TABLES,
    Column("id", Integer, primary_key=True),
    Column("plan", Integer, ForeignKey(PLANS.c.id, ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("saved", String(32), nullable=False),  # when, in UTC
    Column("tonnage", String(32), nullable=False),  # the version that answered
    Column("verb", String(16), nullable=False),
    Column("question", Text, nullable=False),  # JSON
    Column("command", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("needed_bytes", BigInteger),
    Column("usable_bytes", BigInteger),
    Column("usd", Float),
    Column("usd_of", Text),
    Index("tonnage_plan_versions_once", "plan", "version", unique=True),
)  # fmt: skip
FIGURES = (
    "saved",
    "tonnage",
    "verb",
    "question",
    "command",
    "status",
    "answer",
    "needed_bytes",
    "usable_bytes",
    "usd",
    "usd_of",
)
