"""tests/unit/store/test_faults.c, which lets the disk fail under the store, against the private cluster:
a database of its own, with the tables of all migrations."""

import os
import subprocess

from conftest import BUILD, ROOT


def test_a_disk_that_fails_loses_nothing_and_leaves_nothing(server):
    import psycopg2

    program = BUILD / "tests" / "unit" / "store" / "test_faults"
    subprocess.run(["make", "--silent", f"BUILD={BUILD.name}", str(program.relative_to(ROOT))],
                   cwd=ROOT, check=True)
    with server.database("perfolio_cluster").cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS faults")
        cursor.execute("CREATE DATABASE faults")
    database = f"host={server.socket_dir()} dbname=faults user=perfolio_cluster"
    with psycopg2.connect(database) as connection, connection.cursor() as cursor:
        for migration in sorted((ROOT / "api" / "migrations").glob("*.sql")):
            cursor.execute(migration.read_text())
    connection.close()
    result = subprocess.run([program], capture_output=True, text=True,
                            env={**os.environ, "PERFOLIO_TEST_DATABASE": database})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "SKIPPED" not in result.stdout + result.stderr
