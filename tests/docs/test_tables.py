"""The page of tables has what Postgres has."""

from __future__ import annotations

from scripts.docs_site.tables import relations, tables_page
from tests.projection.tables import Tables

from tidelog_projections.projection import Projection

NOT_FOR_READERS = {"schema_version", "worker_shares"}


async def test_every_table_column_and_key_is_described(postgres_dsn: str) -> None:
    async with await Projection.connect(postgres_dsn), Tables.of(postgres_dsn) as tables:
        columns = await tables.rows(
            "SELECT table_name, column_name, data_type, is_nullable = 'NO' AS is_given"
            " FROM information_schema.columns WHERE table_schema = 'tidelog' ORDER BY ordinal_position"
        )
        keys = await tables.rows(
            "SELECT table_name, column_name FROM information_schema.key_column_usage"
            " WHERE table_schema = 'tidelog' ORDER BY ordinal_position"
        )
    there = {row["table_name"] for row in columns} - NOT_FOR_READERS
    described = relations()
    assert set(described) == there
    for name, relation in described.items():
        assert relation.comment
        real = [row for row in columns if row["table_name"] == name]
        assert [column.name for column in relation.columns] == [row["column_name"] for row in real]
        if name == "workers":
            continue  # a view: Postgres knows neither a key nor what is never null
        assert [column.is_given for column in relation.columns] == [row["is_given"] for row in real], name
        assert [*relation.key] == [row["column_name"] for row in keys if row["table_name"] == name]
        for column, row in zip(relation.columns, real, strict=True):
            written = {"timestamptz": "timestamp with time zone", "text[]": "ARRAY"}
            assert written.get(column.type, column.type) == row["data_type"]


def test_the_page_explains_what_the_sql_does() -> None:
    page = tables_page()
    assert "| `next_offset` | • | bigint | where in the log to read on |" in page
    assert "A row for each `job_id`, `enqueue_sequence`." in page
