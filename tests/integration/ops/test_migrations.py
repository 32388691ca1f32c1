"""Migrations of the database: the first start creates the tables.

The server refuses a database of an unknown version and does not change it.
"""

import shutil
import subprocess

import pytest

import stored
from conftest import ROOT
from test_backup import run
from test_store import rows_of

NAMES = sorted(path.stem for path in (ROOT / "api" / "migrations").glob("*.sql"))
pytestmark = pytest.mark.skipif(stored.is_in_bucket(), reason="the database alone is of interest")


def dump(server):
    """The database of a stopped server, as lines of SQL."""
    folder = server.data_dir.parent / "dumped"
    run("backup", "--data-dir", server.data_dir, folder)
    text = subprocess.run(
        ["pg_restore", "-f", "-", folder / "database.dump"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    shutil.rmtree(folder, ignore_errors=True)
    # Newer versions of pg_restore write a random word in these lines.
    return [
        line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))
    ]


def change(server, sql):
    with server.database().cursor() as cursor:
        cursor.execute(sql)


def refused(server):
    """Restarts the server, which must exit and leave the database unchanged; returns its log."""
    server.stop()
    stored_before = dump(server)
    before = len(server.log())
    server.launch()
    assert server.process.wait(120) == 1
    assert dump(server) == stored_before
    return server.log()[before:]


def test_migrations_are_numbered_from_1_without_a_gap():
    assert [name[:5] for name in NAMES] == [f"{n + 1:04d}_" for n in range(len(NAMES))]


def test_the_first_start_applies_all_migrations_and_the_next_none(start_server):
    server = start_server(is_fresh=True)
    assert rows_of(server, "SELECT name FROM schema_migration") == set(NAMES)
    assert f"migrations={len(NAMES)}" in server.log()
    before = len(server.log())
    server.restart()
    assert "migrations=" not in server.log()[before:]


def test_a_database_of_a_development_version_is_refused_and_not_changed(start_server):
    """The first of its 30 migrations had another text, and the files of 24 of them were removed."""
    server = start_server()
    change(server, "UPDATE schema_migration SET checksum = repeat('0', 64) WHERE version = 1")
    change(server, "DELETE FROM schema_migration WHERE version > 5")
    change(server, "INSERT INTO schema_migration SELECT 30, '0030_block_reach', repeat('0', 64)")
    text = refused(server)
    assert "created by a development version of Perfolio (its migration 0001_identity" in text, text
    assert "start with an empty data folder (--data-dir) or an empty database" in text, text


def test_a_database_of_a_newer_version_is_refused_and_not_changed(start_server):
    server = start_server()
    number = len(NAMES) + 1
    change(
        server, f"INSERT INTO schema_migration SELECT {number}, '{number:04d}_x', repeat('0', 64)"
    )
    text = refused(server)
    assert (
        "created by a newer perfoliod" in text and f"migration {number}; this version has" in text
    )
    assert "start that version or a later one" in text


@pytest.mark.long
@pytest.mark.parametrize(
    "sql, part",
    [
        ("UPDATE schema_migration SET checksum = repeat('0', 64)", "a development version"),
        (
            "INSERT INTO schema_migration SELECT 9999, '9999_x', repeat('0', 64)",
            "a newer perfoliod",
        ),
    ],
    ids=["development", "newer"],
)
def test_a_backup_of_a_refused_schema_version_is_not_restored(start_server, tmp_path, sql, part):
    server = start_server()
    change(server, sql)
    folder = server.data_dir.parent
    run("backup", "--data-dir", server.data_dir, folder / "backup")
    done = run("restore", "--data-dir", folder / "again", folder / "backup", check=False)
    assert done.returncode == 1 and part in done.stderr, done
    assert not (folder / "again").exists()
