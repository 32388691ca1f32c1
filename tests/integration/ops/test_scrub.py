"""The background scrub reads every kind of object and finds each of 72 damages.

It can be paused, resumes at its position after a restart, and removes repaired objects from its
list of problems."""

import shutil
import time

import pytest

import stored
from test_damages import KINDS, damage, damaged  # noqa: F401
from test_integrity import flip, folded, metric, push
from test_store import rows_of, until

pytestmark = pytest.mark.skipif(stored.is_in_bucket(), reason="files are changed and removed")

SCRUB = "/api/v1/admin/scrub"


def act(api, action):
    response = api.post(f"{SCRUB}/{action}")
    assert response.status == 200, response
    return response.json()


def state(api):
    response = api.get(SCRUB)
    assert response.status == 200, response
    return response.json()


def run_pass(api):
    """Runs one pass and returns the state after it."""
    before = state(api)["last_pass"]
    act(api, "start")
    until(lambda: state(api)["last_pass"] != before, lambda: f"the pass does not end: {state(api)}")
    return state(api)


@pytest.mark.long
def test_a_pass_finds_72_damages_and_the_next_removes_the_repaired_ones(damaged):  # noqa: F811
    server, content, _, _, done = damaged(3)
    api = server.api()
    clean = run_pass(api)
    assert clean["problems"] == [] and clean["last_pass"]["problems"] == 0
    count = len(
        rows_of(
            server,
            "SELECT object_key FROM share UNION ALL SELECT object_key FROM upload_part UNION ALL"
            " SELECT object_key FROM debug_file UNION ALL SELECT object_key FROM symbol_table "
            "UNION ALL"
            " SELECT object_key FROM segment UNION ALL SELECT object_key FROM block",
        )
    )
    read = {kind: metric(api, "perfolio_scrub_objects_total", kind=kind) for kind in KINDS}
    assert clean["last_pass"]["objects"] == count, read
    whole = {key: (server.data_dir / "objects" / key).read_bytes() for key in done}
    for key, (_, how) in done.items():
        damage(server, how, key)
    found = run_pass(api)
    assert {one["object"]: (one["kind"], one["problem"]) for one in found["problems"]} == {
        key: (kind, "missing" if how == "delete" else "broken") for key, (kind, how) in done.items()
    }
    assert found["last_pass"]["problems"] == found["problem_count"] == len(done)
    assert {one["tenant_id"] for one in found["problems"]} == {content.tenant.id}
    log = server.log()
    for key in done:
        lines = [
            line for line in log.splitlines() if f"object={key} " in line and "scrub found" in line
        ]
        assert len(lines) == 1 and "level=error" in lines[0], (key, lines)
    until(
        lambda: metric(api, "perfolio_object_problems", problem="broken") == len(done) * 3 // 4,
        "the metrics do not show the problems",
    )
    assert metric(api, "perfolio_object_problems", problem="missing") == len(done) // 4
    assert metric(api, "perfolio_scrub_last_pass_timestamp_seconds") > time.time() - 600
    for kind in KINDS:
        assert metric(api, "perfolio_scrub_objects_total", kind=kind) >= 24

    repaired = sorted(done)[: len(done) // 2]
    for key in repaired:
        path = server.data_dir / "objects" / key
        path.write_bytes(whole[key])
        shutil.chown(path, path.parent.stat().st_uid, path.parent.stat().st_gid)
    left = run_pass(api)
    assert {one["object"] for one in left["problems"]} == set(done) - set(repaired)
    printed = server.cli("admin", "scrub", "show", "--json")
    assert printed.returncode == 0 and sorted(done)[-1].encode() in printed.stdout, printed


@pytest.mark.long
def test_a_paused_scrub_resumes_at_its_position_after_a_restart(start_server):
    server = start_server()
    api = server.api()
    for i in range(40):
        push(api, folded(300, i))
    keys = sorted(key.split("/")[1] for key in server.objects.keys("share/"))
    assert act(api, "pause")["state"] == "paused"
    act(api, "start")
    server.stop()
    server.start()
    # Simulates a pass that was paused after the tenth share.
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE scrub SET started_at = now(), kind = 'share', cursor = %s, objects = 10",
            [share_ids_in_order(server)[9]],
        )
    until(lambda: metric(api, "perfolio_scrub_paused") == 1, "the pause is not in the metrics")
    assert state(api)["state"] == "paused" and state(api)["pass"]["objects"] == 10
    assert state(api)["last_pass"] is None
    first, eleventh = share_ids_in_order(server)[0], share_ids_in_order(server)[10]
    for key in (first, eleventh):
        server.objects.write(f"share/{key}", flip(server.objects.read(f"share/{key}")))
    assert act(api, "resume")["state"] in ("running", "waiting")
    until(lambda: state(api)["last_pass"], "the pass does not end")
    after = state(api)
    assert after["state"] == "waiting" and after["pass"] is None
    assert after["last_pass"]["objects"] == len(keys) == 40
    assert [one["object"] for one in after["problems"]] == [
        f"share/{eleventh}"
    ], "the resumed pass must not read the first ten shares"
    assert metric(api, "perfolio_scrub_objects_total", kind="share") == 30


def share_ids_in_order(server):
    with server.cursor() as cursor:
        cursor.execute("SELECT id FROM share ORDER BY id")
        return [row[0] for row in cursor.fetchall()]


@pytest.mark.long
def test_a_scrub_respects_its_rate_limit(start_server):
    """The lowest rate is 4 MiB/s: 24 MiB take at least five seconds, however fast the disk is."""
    server = start_server()
    api = server.api()
    for i in range(4):
        push(api, folded(6 << 20, i))
    begin = time.monotonic()
    done = run_pass(api)
    assert done["last_pass"]["bytes"] >= 24 << 20
    assert time.monotonic() - begin >= 5


@pytest.mark.long
def test_the_position_is_saved_between_large_objects(start_server):
    server = start_server()
    api = server.api()
    act(api, "pause")
    for i in range(6):
        push(api, folded(6 << 20, i))
    with server.cursor() as cursor:
        cursor.execute(
            """
            CREATE TABLE place (kind text, key text, objects bigint);
            CREATE FUNCTION note_place() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
            BEGIN
                INSERT INTO place VALUES (new.kind, new.cursor, new.objects);
                RETURN new;
            END $$;
            CREATE TRIGGER note_place BEFORE UPDATE OF cursor ON scrub
                FOR EACH ROW EXECUTE FUNCTION note_place()"""
        )
    act(api, "resume")
    assert run_pass(api)["last_pass"]["objects"] == 6
    order = share_ids_in_order(server)
    with server.cursor() as cursor:
        cursor.execute("SELECT key, objects FROM place WHERE kind = 'share' AND key <> ''")
        places = cursor.fetchall()
    assert any(0 < objects < 6 for _, objects in places), places
    assert all(key == order[objects - 1] for key, objects in places), places


def test_a_persistent_failure_is_logged_once(start_server):
    server = start_server()

    def failures():
        return [
            line
            for line in server.log().splitlines()
            if "background work failed" in line and "job=scrub" in line
        ]

    with server.cursor() as cursor:
        cursor.execute("ALTER TABLE scrub RENAME TO scrub_away")
        until(failures, "no failure is logged")
        time.sleep(7)  # about three polls; with fewer polls the test passes as well
        cursor.execute("ALTER TABLE scrub_away RENAME TO scrub")
    assert len(failures()) == 1, failures()


def test_starting_a_disabled_scrub_is_refused(start_server):
    server = start_server("--scrub-period", "0")
    api = server.api()
    assert state(api)["period_s"] == 0
    response = api.post(f"{SCRUB}/start")
    assert response.status == 409 and "--scrub-period" in response.json()["detail"], response
    assert api.post(f"{SCRUB}/destroy").status == 404
