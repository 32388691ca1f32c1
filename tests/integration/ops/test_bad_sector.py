"""A stored file with a page that cannot be read concerns only the requests that read it.

The server runs with tests/preload/bad_sector.c: mappings of the chosen objects raise SIGBUS.
"""

import gzip

import pytest

import sample_profiles as samples
from conftest import BUILD, HAS_CHEAP_SCRYPT, PRELOAD, make

BAD_SECTOR = BUILD / "tests" / "preload" / "bad_sector.so"

pytestmark = pytest.mark.skipif(
    not HAS_CHEAP_SCRYPT, reason="a library cannot be preloaded into a server with sanitizers"
)


def find_object(server, data):
    """The path of the object with these bytes, below the data folder."""
    for path in (server.data_dir / "objects").rglob("*"):
        if path.is_file() and path.read_bytes() == data:
            return path
    raise AssertionError("no such object")


def restart_with_bad_sector(server, path, folder):
    library = folder / BAD_SECTOR.name
    make(BAD_SECTOR)
    library.write_bytes(BAD_SECTOR.read_bytes())
    library.chmod(0o755)
    preloaded = [str(library), PRELOAD.get("LD_PRELOAD", "")]
    server.environment.update(
        LD_PRELOAD=":".join(filter(None, preloaded)),
        # Relative: the server may see the folder under another name.
        BAD_SECTOR=f"{path.parent.name}/{path.name}",
    )
    server.restart()


def test_a_share_on_a_bad_sector_fails_alone(start_server):
    server = start_server()
    api = server.api()
    bad = gzip.compress(samples.FOLDED * 5000, 6)
    bad_id = api.post("/api/v1/shares", bad).json()["id"]
    good_id = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    restart_with_bad_sector(server, find_object(server, bad), server.data_dir.parent)
    child = server.child_pid()
    api = server.api()
    for report in ("top", "flame"):
        response = api.get(f"/api/v1/shares/{bad_id}/{report}")
        assert response.status == 500, response
        assert api.get(f"/api/v1/shares/{good_id}/{report}").status == 200
    assert server.child_pid() == child, "the server was restarted: " + server.log()[-2000:]
    assert "the disk may be failing" in server.log()
