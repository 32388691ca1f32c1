"""Runs tests/unit/lib/io/test_pg.c against the private cluster of a server."""

import os
import subprocess

from conftest import BUILD, ROOT


def test_the_postgresql_client_passes_its_unit_tests(server):
    program = BUILD / "tests" / "unit" / "lib" / "io" / "test_pg"
    subprocess.run(
        ["make", "--silent", f"BUILD={BUILD.name}", str(program.relative_to(ROOT))],
        cwd=ROOT,
        check=True,
    )
    with server.database("perfolio_cluster").cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS pg_test")
        cursor.execute("CREATE DATABASE pg_test")
    database = f"host={server.socket_dir()} dbname=pg_test user=perfolio_cluster"
    result = subprocess.run(
        [program],
        env={**os.environ, "PERFOLIO_TEST_DATABASE": database},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "SKIPPED" not in result.stdout + result.stderr
