"""Unit tests of the store that need its tables. They run against the private cluster, in a separate
database with all migrations.

test_faults.c simulates disk failures; test_claims.c checks the order of background jobs;
test_search.c checks when writers end and which of them are searched for orphans."""

import os
import subprocess

import pytest

from conftest import BUILD, ROOT

pytestmark = pytest.mark.long


@pytest.fixture
def database(server):
    import psycopg2

    with server.database("perfolio_cluster").cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS faults")
        cursor.execute("CREATE DATABASE faults")
    text = f"host={server.socket_dir()} dbname=faults user=perfolio_cluster"
    with psycopg2.connect(text) as connection, connection.cursor() as cursor:
        for migration in sorted((ROOT / "api" / "migrations").glob("*.sql")):
            cursor.execute(migration.read_text())
    connection.close()
    return text


def run(name, database):
    program = BUILD / "tests" / "unit" / "store" / name
    subprocess.run(
        ["make", "--silent", f"BUILD={BUILD.name}", str(program.relative_to(ROOT))],
        cwd=ROOT,
        check=True,
    )
    result = subprocess.run(
        [program],
        capture_output=True,
        text=True,
        env={**os.environ, "PERFOLIO_TEST_DATABASE": database},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "SKIPPED" not in result.stdout + result.stderr


def test_disk_failures_lose_no_data_and_leave_no_files(database):
    run("maintain/test_faults", database)


def test_each_kind_of_job_runs_within_a_bounded_number_of_claims(database):
    run("catalogue/test_claims", database)


def test_writers_end_and_are_searched_in_turn(database):
    run("catalogue/test_search", database)
