"""A data base of saved plans as tonnage 0.1 made it, before its tables were changed for the first time: the text is
never changed.
"""

from sqlalchemy import create_engine, text

from tonnage.web.store.engine import store_url

SERIAL = {"sqlite": "INTEGER", "postgresql": "SERIAL"}
TABLES = """
CREATE TABLE tonnage_schema (version INTEGER NOT NULL);
CREATE TABLE tonnage_plans (
  id {serial} NOT NULL, name VARCHAR(100) NOT NULL, version INTEGER NOT NULL, deleted BOOLEAN NOT NULL, PRIMARY KEY (id), UNIQUE (name));
CREATE TABLE tonnage_plan_versions (
  id {serial} NOT NULL, plan INTEGER NOT NULL, version INTEGER NOT NULL, saved VARCHAR(32) NOT NULL, tonnage VARCHAR(32) NOT NULL,
  verb VARCHAR(16) NOT NULL, question TEXT NOT NULL, command TEXT NOT NULL, status INTEGER NOT NULL, answer TEXT NOT NULL,
  needed_bytes BIGINT, usable_bytes BIGINT, usd FLOAT, usd_of TEXT, PRIMARY KEY (id),
  FOREIGN KEY(plan) REFERENCES tonnage_plans (id) ON DELETE CASCADE);
CREATE UNIQUE INDEX tonnage_plan_versions_once ON tonnage_plan_versions (plan, version);
INSERT INTO tonnage_schema (version) VALUES (1)
"""
QUESTIONS = {
    ("grows", 1): '{"model":"llama-3.1-8b","on":"8xH100-SXM-80GB"}',
    ("grows", 2): '{"model":"llama-3.1-8b","on":"8xH100-SXM-80GB","method":"qlora"}',
    ("pasted 语言", 1): '{"model":{"model_type":"llama"},"on":["h100","a100"]}',
    ("gone", 1): '{"model":"gpt2"}',
}
DELETED = {"gone"}


def make(url: str) -> None:
    """Its tables, with three names and four versions."""
    engine = create_engine(store_url(url))
    with engine.begin() as connection:
        for statement in TABLES.format(serial=SERIAL[connection.dialect.name]).split(";\n"):
            connection.execute(text(statement))
        for name in dict.fromkeys(name for name, _ in QUESTIONS):
            latest = max(version for each, version in QUESTIONS if each == name)
            connection.execute(
                text("INSERT INTO tonnage_plans (name, version, deleted) VALUES (:name, :version, :deleted)"),
                {"name": name, "version": latest, "deleted": name in DELETED},
            )
        for (name, version), question in QUESTIONS.items():
            connection.execute(
                text(
                    "INSERT INTO tonnage_plan_versions (plan, version, saved, tonnage, verb, question, "
                    "command, status, answer, needed_bytes, usd)"
                    " SELECT id, :version, '2026-10-01T00:00:00.000+00:00', '0.1.0', 'train', :question, "
                    "'tonnage train', 0, 'fits', 7, 0.5"
                    " FROM tonnage_plans WHERE name = :name"
                ),
                {"name": name, "version": version, "question": question},
            )
    engine.dispose()
