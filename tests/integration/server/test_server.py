"""perfoliod serve as a program: users, certificates, start, stop, invalid settings."""

import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse

import pytest

from conftest import PERFOLIOD, Server, copy_template, free_port, make_folder
from test_http_raw import has_begun

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="starts servers as other users")
FOLDED = b"main;work 3\nmain;rest 1\n"


def run(*arguments, **environment):
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PERFOLIO_")}
    variables.update(environment)
    return subprocess.run(
        [PERFOLIOD, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=variables,
        timeout=180,
    )


def owner_of(pid):
    return pathlib.Path("/proc", str(pid)).stat().st_uid


def name_of(pid):
    return pathlib.Path("/proc", str(pid), "comm").read_text().strip()


# ---- users and files ----


@needs_root
def test_no_process_runs_as_root_and_server_and_database_users_differ(server):
    serving = server.child_pid()
    assert pwd.getpwuid(owner_of(serving)).pw_name == "perfolio"
    assert pwd.getpwuid(owner_of(server.postgres_pid())).pw_name == "postgres"
    for pid in server.descendants():
        assert owner_of(pid) != 0, name_of(pid)
        status = pathlib.Path("/proc", str(pid), "status").read_text()
        assert "CapEff:\t0000000000000000" in status
        assert [line for line in status.splitlines() if line.startswith("Groups:")][0].split()[
            1:
        ] in ([], [str(pathlib.Path("/proc", str(pid)).stat().st_gid)]) or name_of(
            pid
        ) == "postgres"  # Debian puts postgres into the group ssl-cert


def test_secrets_in_the_data_folder_have_private_modes(server):
    def mode(name):
        return (server.data_dir / name).stat().st_mode & 0o777

    assert mode("admin.token") == 0o600
    assert mode("tls/ca.key") == 0o600
    assert mode("tls/server.key") == 0o640
    assert mode("tls/ca.crt") == 0o644
    assert mode("pg") == 0o700
    assert mode("objects") == 0o700
    assert server.token.startswith("pf_") and len(server.token) == 46


@needs_root
def test_the_token_file_belongs_to_the_user_of_sudo(start_server):
    server = start_server(environment={"SUDO_UID": "65534", "SUDO_GID": "65534"})
    assert (server.data_dir / "admin.token").stat().st_uid == 65534


def test_the_database_uses_no_network_and_unprivileged_roles(server):
    with server.database("perfolio_cluster") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW listen_addresses")
        assert cursor.fetchone() == ("",)
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolsuper OR rolbypassrls")
        assert cursor.fetchall() == [("perfolio_cluster",)]
        cursor.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = 'perfolio' "
            "AND application_name = 'perfoliod'"
        )
        assert {name for (name,) in cursor} <= {"perfolio_server", "perfolio_jobs"}


@needs_root
@pytest.mark.parametrize(
    "user, role, may",
    [
        ("perfolio", "perfolio_server", True),
        ("perfolio", "perfolio_jobs", True),
        ("perfolio", "perfolio_owner", False),
        ("perfolio", "perfolio_cluster", False),
        ("nobody", "perfolio_server", False),
        ("postgres", "perfolio_owner", True),
        ("postgres", "perfolio_server", False),
    ],
)
def test_a_role_is_open_only_to_its_user(server, user, role, may):
    entry = pwd.getpwnam(user)
    script = (
        "import psycopg2, sys\n"
        "psycopg2.connect(host=sys.argv[1], dbname='perfolio', user=sys.argv[2])"
    )
    result = subprocess.run(
        [
            "setpriv",
            f"--reuid={entry.pw_uid}",
            f"--regid={entry.pw_gid}",
            "--init-groups",
            sys.executable,
            "-c",
            script,
            server.socket_dir(),
            role,
        ],
        capture_output=True,
        cwd="/",
    )
    assert (result.returncode == 0) == may, result.stderr


# ---- start and stop ----


def test_a_first_start_prints_a_working_command_and_link(start_server):
    server = start_server(is_fresh=True)
    deadline = time.monotonic() + 60
    while "push cpu.pb.gz" not in server.log() and time.monotonic() < deadline:
        time.sleep(0.02)
    text = server.log()
    lines = text[text.index("  Push a profile") :].split("\n\n")[0]
    command = lines.replace("Push a profile", "").replace("cpu.pb.gz", "-").strip()
    result = subprocess.run(command, shell=True, input=FOLDED, capture_output=True, timeout=60)
    assert result.returncode == 0, result
    link = result.stdout.decode().strip()
    assert link.startswith(server.url + "/p/")
    assert server.anonymous().get(link[len(server.url) :] + "/raw").body == FOLDED
    # The sign-in link works once.
    code = text.split("/login#code=")[1].split()[0]
    response = server.anonymous().post("/api/v1/session", json={"code": code})
    assert response.status == 200 and response.json()["role"] == "owner", response
    assert server.anonymous().post("/api/v1/session", json={"code": code}).status == 401


def test_sigterm_lets_requests_finish_and_stops_the_database_cleanly(start_server):
    server = start_server()
    api = server.api()
    connection = server.connect()
    body = FOLDED * 1000
    connection.putrequest("POST", "/api/v1/shares")
    connection.putheader("Authorization", f"Bearer {server.token}")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body[:100])
    wait_for(lambda: has_begun(server))
    server.process.send_signal(signal.SIGTERM)
    wait_for(lambda: not is_taking_requests(server))
    assert server.process.poll() is None
    connection.sock.sendall(body[100:])
    response = connection.getresponse()
    assert response.status == 201, response.read()
    assert server.stop() == 0
    assert not (server.data_dir / "pg/postmaster.pid").exists()
    assert (
        "database system is shut down"
        in (server.data_dir / "postgres.log").read_text().splitlines()[-1]
    )
    api.close()


def test_the_same_signal_twice_still_lets_requests_finish(start_server):
    server = start_server()
    connection = server.connect()
    body = FOLDED * 1000
    connection.putrequest("POST", "/api/v1/shares")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body[:100])
    wait_for(lambda: has_begun(server))
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGTERM,
    ):  # as make and a terminal send them
        server.process.send_signal(number)
        time.sleep(0.2)
    connection.sock.sendall(body[100:])
    assert connection.getresponse().status == 201
    assert server.stop() == 0


def test_a_second_ctrl_c_stops_the_server_at_once(start_server):
    server = start_server("--shutdown-timeout", "600s")
    connection = server.connect()
    connection.putrequest("POST", "/api/v1/shares")
    connection.putheader("Content-Length", "1000")
    connection.endheaders(b"x")
    wait_for(lambda: has_begun(server))
    server.process.send_signal(signal.SIGINT)
    wait_for(lambda: not is_taking_requests(server))
    time.sleep(1.5)
    assert server.process.poll() is None
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(120) == 0
    assert (
        "database system is shut down"
        in (server.data_dir / "postgres.log").read_text().splitlines()[-1]
    )


def test_the_access_log_is_reopened_on_sighup(start_server):
    folder = make_folder()
    try:
        log = folder / "access.log"
        server = start_server("--access-log", log)
        server.anonymous().get("/first-path")
        wait_for(lambda: "/first-path" in log.read_text())
        log.rename(folder / "access.log.1")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reloaded certificate and access log" in server.log())
        server.anonymous().get("/second-path")
        wait_for(lambda: "/second-path" in log.read_text())
        assert "/second-path" not in (folder / "access.log.1").read_text()
        assert server.stop() == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_large_database_log_is_rotated(start_server):
    server = start_server()
    log, old = server.data_dir / "postgres.log", server.data_dir / "postgres.log.old"
    line = b"so it goes on and on\n"
    with open(
        log, "ab", buffering=0
    ) as file:  # one write, because the server may check the file meanwhile
        file.write(line * ((17 << 20) // len(line)) + b"the last line\n")
    server.process.send_signal(signal.SIGHUP)  # otherwise it checks once a minute
    wait_for(lambda: "restarted the database's log file" in server.log())
    assert log.stat().st_size < 1 << 20
    assert old.stat().st_size <= 16 << 20
    assert b"the last line\n" in old.read_bytes()[-4096:]  # the database may have logged more
    assert server.stop() == 0
    text = log.read_text()
    assert "database system is shut down" in text and "\0" not in text


def test_a_server_can_be_stopped_before_it_is_ready(start_server):
    server = start_server(is_fresh=True, wait=False)
    deadline = time.monotonic() + 120
    while "creating the database cluster" not in server.log() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.stop() == 0, server.log()
    server.start()


def test_a_lost_admin_token_is_replaced(start_server):
    server = start_server()
    old = server.token
    assert server.stop() == 0
    server.start()
    assert server.token == old  # an existing token file is kept
    assert server.stop() == 0
    (server.data_dir / "admin.token").unlink()
    server.start()
    assert server.token != old
    assert server.api().get("/api/v1/session").json()["tenant"]


def test_a_data_folder_is_used_by_one_server_only(start_server):
    server = start_server()
    result = run("serve", "--data-dir", server.data_dir, "--listen", f"localhost:{free_port()}")
    assert result.returncode == 1 and "another perfoliod uses" in result.stderr
    assert server.is_ready()


def test_a_folder_with_other_files_is_refused_and_not_changed():
    folder = make_folder()
    try:
        (folder / "thesis.tex").write_text("mine")
        folder.chmod(0o700)
        result = run("serve", "--data-dir", folder, "--listen", f"localhost:{free_port()}")
        assert result.returncode == 2 and "contains other files" in result.stderr
        assert os.listdir(folder) == ["thesis.tex"]
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_port_in_use_is_reported(server):
    folder = make_folder()
    try:
        result = run("serve", "--data-dir", folder / "data", "--listen", f"localhost:{server.port}")
        assert result.returncode == 1 and f"port {server.port} is in use" in result.stderr
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "one, other, name",
    [
        ("localhost", "localhost", "127.0.0.1"),
        ("127.0.0.1", "localhost", "127.0.0.1"),
        ("[::1]", "localhost", "::1"),
        ("0.0.0.0", "127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::]", "::"),
    ],
)
def test_an_address_given_twice_is_reported_as_such(one, other, name):
    folder, port = make_folder(), free_port()
    try:
        result = run(
            "serve",
            "--data-dir",
            folder / "data",
            "--listen",
            f"{one}:{port}",
            "--listen",
            f"{other}:{port}",
        )
        assert result.returncode == 1 and "another program" not in result.stderr
        assert f"two --listen settings name {name} port {port}: " in result.stderr
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_an_orphaned_database_is_stopped_at_the_next_start(start_server):
    server = start_server()
    orphan = server.postgres_pid()
    os.kill(orphan, signal.SIGSTOP)  # so that it cannot detect the end of its supervisor
    server.process.kill()
    server.process.wait(60)
    server.launch()
    wait_for(lambda: "earlier run left running" in server.log())
    os.kill(orphan, signal.SIGCONT)
    server.wait_ready()
    assert server.postgres_pid() != orphan
    assert "earlier run left running" in server.log()


def test_sessions_of_a_killed_database_do_not_prevent_the_next_start(start_server):
    """A session that waits for a lock of a killed one never ends; a stopped one does not either."""
    server = start_server()
    database = server.postgres_pid()
    sessions = server.descendants(database)
    assert sessions
    for pid in sessions:
        os.kill(pid, signal.SIGSTOP)
    server.process.kill()
    server.process.wait(60)
    os.kill(database, signal.SIGKILL)
    server.launch()
    server.wait_ready()
    assert "killed sessions that an earlier run of the database left" in server.log()


# ---- folders, users and databases ----


@needs_root
def test_the_server_runs_below_a_folder_that_only_root_may_enter(cluster_template):
    folder = make_folder()
    folder.chmod(0o700)
    server = Server(folder / "data")
    try:
        copy_template(cluster_template, server.data_dir)
        server.start()
        assert server.api().post("/api/v1/shares", FOLDED).status == 201
        assert pwd.getpwuid(owner_of(server.child_pid())).pw_name == "perfolio"
        assert server.stop() == 0
        server.start()  # a second start works too
    finally:
        assert server.stop() == 0
        shutil.rmtree(folder, ignore_errors=True)


@needs_root
def test_the_server_runs_as_an_ordinary_user():
    folder = make_folder()
    shutil.copy(PERFOLIOD, folder / "perfoliod")  # the user nobody may lack access to the build
    wrapper = folder / "as-nobody"
    wrapper.write_text(
        "#!/bin/sh\nexec setpriv --reuid=nobody --regid=nogroup --clear-groups "
        f'{folder}/perfoliod "$@"\n'
    )
    wrapper.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    shutil.chown(home, "nobody", "nogroup")
    server = Server(home / "data", program=wrapper)
    server.log_path = folder / "log"
    try:
        server.start()
        assert {owner_of(pid) for pid in server.descendants()} == {pwd.getpwnam("nobody").pw_uid}
        assert server.api().post("/api/v1/shares", FOLDED).status == 201
        assert server.stop() == 0
        # A start by root keeps the users that own the folder.
        server.program = PERFOLIOD
        server.start()
        assert owner_of(server.child_pid()) == pwd.getpwnam("nobody").pw_uid
        assert len(server.api().get("/api/v1/shares").json()["shares"]) == 1
    finally:
        assert server.stop() == 0
        shutil.rmtree(folder, ignore_errors=True)


def test_the_data_path_may_be_too_long_for_a_socket(cluster_template):
    folder = make_folder()
    server = Server(folder / ("x" * 100) / "data")
    server.data_dir.parent.mkdir()
    try:
        copy_template(cluster_template, server.data_dir)
        server.start()
        assert server.api().post("/api/v1/shares", FOLDED).status == 201
        socket_dir = server.socket_dir()
        assert len(socket_dir) < 94 and not socket_dir.startswith(str(folder))
        assert server.stop() == 0
        assert not os.path.exists(socket_dir)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_an_installation_works_in_any_folder(start_server, tmp_path):
    target = make_folder()
    try:
        subprocess.run(
            [
                "make",
                "-s",
                "install",
                f"BUILD={PERFOLIOD.parent.name}",
                f"DESTDIR={target}",
                "PREFIX=/opt/perfolio",
            ],
            check=True,
            timeout=600,
            cwd=PERFOLIOD.parents[2],
            capture_output=True,
        )
        for name in (
            "bin/perfolio",
            "share/man/man1/perfolio.1",
            "share/man/man8/perfoliod.8",
            "share/bash-completion/completions/perfolio",
            "lib/systemd/system/perfoliod.service",
        ):
            assert (target / "opt/perfolio" / name).is_file(), name
        unit = (target / "opt/perfolio/lib/systemd/system/perfoliod.service").read_text()
        assert "ExecStart=/opt/perfolio/bin/perfoliod serve" in unit
        settings = target / "etc/perfolio/perfolio.ini"
        server = start_server("--config", settings, program=target / "opt/perfolio/bin/perfoliod")
        assert server.api().post("/api/v1/shares", FOLDED).status == 201
        assert f"'{target}/opt/perfolio/bin/perfolio' push" in server.log()
        assert server.stop() == 0
        settings.write_text("[server]\n; changed by hand\n")
        subprocess.run(
            ["sh", "deploy/install.sh", PERFOLIOD.parent, target, "/opt/perfolio"],
            check=True,
            cwd=PERFOLIOD.parents[2],
        )
        assert "changed by hand" in settings.read_text()
    finally:
        shutil.rmtree(target)


EXTERNAL_PASSWORD = "p/w: @?"


@pytest.fixture
def external_database():
    """The URL of a separate PostgreSQL with an ordinary role."""
    yield from run_external_postgres(
        lambda folder, port: f"postgresql://app@/app?host={folder}&port={port}"
    )


@pytest.fixture
def remote_database():
    """Like external_database, but over TCP and with a password."""
    password = urllib.parse.quote(EXTERNAL_PASSWORD, safe="")
    yield from run_external_postgres(
        lambda folder, port: f"postgresql://app:{password}@127.0.0.1:{port}/app"
    )


def run_external_postgres(url_of):
    bin_dir = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))[-1].parent
    folder = make_folder()
    port = free_port()
    become = []
    if IS_ROOT:
        shutil.chown(folder, "postgres", "postgres")
        become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    subprocess.run(
        [
            *become,
            bin_dir / "initdb",
            "-D",
            folder / "pg",
            "-U",
            "root_role",
            "-N",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ],
        check=True,
        capture_output=True,
        cwd="/",
    )
    process = subprocess.Popen(
        [
            *become,
            bin_dir / "postgres",
            "-D",
            folder / "pg",
            "-k",
            folder,
            "-p",
            str(port),
            "-c",
            "listen_addresses=127.0.0.1",
        ],
        cwd="/",
        stderr=subprocess.DEVNULL,
    )
    import psycopg2

    deadline = time.monotonic() + 60
    while True:
        try:
            connection = psycopg2.connect(
                host=str(folder), port=port, dbname="postgres", user="root_role"
            )
            break
        except psycopg2.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE app LOGIN CREATEROLE PASSWORD %s", [EXTERNAL_PASSWORD])
        cursor.execute("CREATE DATABASE app OWNER app")
    connection.close()
    yield url_of(folder, port)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
def test_the_server_works_with_an_external_database(start_server, external_database):
    assert run("migrate", "--database-url", external_database).returncode == 0
    server = start_server("--database-url", external_database, is_fresh=True)
    api = server.api()
    response = api.post("/api/v1/shares", FOLDED)
    assert response.status == 201, response
    share = response.json()["id"]
    assert server.anonymous().get(f"/api/v1/shares/{share}/raw").body == FOLDED
    assert not (server.data_dir / "pg").exists()
    assert api.get("/api/v1/admin/tenants").status == 200
    # Row-level security applies although the role of the connection may see all rows.
    import psycopg2

    connection = psycopg2.connect(external_database)
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE perfolio_server; SELECT count(*) FROM share")
        assert cursor.fetchone() == (0,)
        cursor.execute("SET app.tenant = '2'; SELECT count(*) FROM share")
        assert cursor.fetchone() == (1,)
    connection.close()
    # Its backup can be restored into a folder with a private cluster.
    backup, again = server.data_dir.parent / "backup", server.data_dir.parent / "again"
    result = run(
        "backup", "--data-dir", server.data_dir, "--database-url", external_database, backup
    )
    assert result.returncode == 0, result
    token = server.token
    assert server.stop() == 0
    result = run("restore", "--data-dir", again, backup)
    assert result.returncode == 0, result
    restored = Server(again).start()
    try:
        assert restored.api(token).get(f"/api/v1/shares/{share}/raw").body == FOLDED
    finally:
        assert restored.stop() == 0


def refusal_log(server):
    """Starts a server that must fail to start, and returns its log."""
    if not server.process or server.process.poll() is not None:
        server.launch()
    assert server.process.wait(60) != 0
    return server.log()


@pytest.mark.long
def test_a_database_belongs_to_one_data_folder(start_server, external_database):
    import psycopg2

    def database(statement):
        with psycopg2.connect(external_database) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone() if cursor.description else None

    server = start_server("--database-url", external_database, is_fresh=True)
    response = server.api().post("/api/v1/shares", FOLDED)
    raw = f"/api/v1/shares/{response.json()['id']}/raw"
    file = server.data_dir / "objects/.database-id"
    pair = file.read_text().strip()
    # Another folder, as after a mistake in --data-dir, while the first server runs.
    other = start_server("--database-url", external_database, is_fresh=True, wait=False)
    log = refusal_log(other)
    assert not (other.data_dir / "admin.token").exists()
    assert "belongs to another data folder" in log and pair in log, log
    assert database("SELECT count(*) FROM token") == (1,), "the refused server must not add rows"
    assert server.anonymous().get(raw).body == FOLDED
    assert server.stop() == 0
    # The message states how to adopt a folder that contains the objects.
    file.unlink()
    log = refusal_log(server)
    assert f"write {pair} into objects/.database-id" in log, log
    file.write_text(pair + "\n")
    server.start()
    assert server.anonymous().get(raw).body == FOLDED
    assert server.stop() == 0
    # Simulates starts that were killed before the file was written or before it was confirmed.
    database("UPDATE object_folder SET is_confirmed = false")
    file.unlink()
    server.start()
    assert server.stop() == 0
    # The start creates a new id, because another folder may have adopted the old one.
    assert file.read_text().strip() != pair
    pair = file.read_text().strip()
    database("UPDATE object_folder SET is_confirmed = false")
    server.start()
    assert server.stop() == 0
    assert database("SELECT id, is_confirmed FROM object_folder") == (pair, True)
    # With a recreated database, the sweep would delete all objects.
    database("DELETE FROM object_folder")
    log = refusal_log(server)
    assert "belongs to another database" in log and "remove objects/.database-id" in log, log
    file.write_text("not an id\n")
    assert "contains no id" in refusal_log(server)
    file.unlink()
    server.start()
    assert server.anonymous().get(raw).body == FOLDED
    # A backup contains no id, because a restored folder and its database are a new pair.
    backup = server.data_dir.parent / "backup"
    result = run(
        "backup", "--data-dir", server.data_dir, "--database-url", external_database, backup
    )
    assert result.returncode == 0, result
    assert not (backup / "objects/.database-id").exists()
    dump = subprocess.run(
        ["pg_restore", "-f", "-", backup / "database.dump"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "CREATE TABLE public.object_folder" in dump and file.read_text().strip() not in dump


def as_superuser(url, *statements):
    import psycopg2

    connection = psycopg2.connect(url.replace("app@", "root_role@"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    connection.close()


@pytest.mark.long
def test_an_external_database_requires_a_user_with_minimal_privileges(external_database):
    folder = make_folder()

    def refusals():
        for command in (
            ["migrate"],
            ["serve", "--data-dir", folder / "data", "--listen", "localhost:0"],
        ):
            result = run(*command, "--database-url", external_database)
            assert result.returncode != 0
            yield result.stderr

    try:
        for privilege in ("SUPERUSER", "BYPASSRLS"):
            as_superuser(external_database, f"ALTER ROLE app {privilege}")
            for message in refusals():
                assert (
                    "names the user app, a superuser or one that bypasses row-level security"
                    in message
                )
            as_superuser(external_database, f"ALTER ROLE app NO{privilege}")
        roles = "perfolio_owner, perfolio_server, perfolio_jobs"
        as_superuser(external_database, "ALTER ROLE app NOCREATEROLE")
        for message in refusals():
            statement = re.search("run: (.*)", message)[1]
            assert (
                statement
                == "".join(f"CREATE ROLE {role}; " for role in roles.split(", "))
                + f"GRANT {roles} TO app"
            )
            assert "may not become" in message and "SQLSTATE" not in message
        as_superuser(external_database, statement)
        assert run("migrate", "--database-url", external_database).returncode == 0
        as_superuser(
            external_database,
            "REVOKE perfolio_server, perfolio_jobs FROM app",
            "ALTER ROLE app CREATEROLE",
        )
        for message in refusals():
            statement = re.search("run: (.*)", message)[1]
            assert statement == "GRANT perfolio_server, perfolio_jobs TO app"
        as_superuser(external_database, statement, "ALTER ROLE app NOCREATEROLE")
        assert run("migrate", "--database-url", external_database).returncode == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
def test_a_folder_without_an_id_is_accepted_only_by_its_database(start_server, external_database):
    """Simulates an upgrade: neither the database nor its folder has an id yet."""
    import psycopg2

    server = start_server("--database-url", external_database, is_fresh=True)
    raw = f"/api/v1/shares/{server.api().post('/api/v1/shares', FOLDED).json()['id']}/raw"
    assert server.stop() == 0
    with psycopg2.connect(external_database) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM object_folder")
    connection.close()
    (server.data_dir / "objects/.database-id").unlink()
    empty = start_server("--database-url", external_database, is_fresh=True, wait=False)
    assert "belongs to another data folder" in refusal_log(empty)
    filled = start_server(is_fresh=True)
    assert filled.api().post("/api/v1/shares", FOLDED).status == 201
    assert filled.stop() == 0
    shutil.rmtree(filled.data_dir / "pg")
    filled.arguments = ["--database-url", external_database]
    assert "belongs to another data folder" in refusal_log(filled)
    backup = server.data_dir.parent / "backup"
    result = run(
        "backup", "--data-dir", filled.data_dir, "--database-url", external_database, backup
    )
    assert result.returncode != 0 and "belongs to another data folder" in result.stderr, result
    assert not backup.exists()
    server.start()
    assert server.anonymous().get(raw).body == FOLDED


@pytest.mark.long
def test_private_and_external_databases_are_not_confused(start_server, external_database):
    def objects(server):
        return sorted((server.data_dir / "objects/share").iterdir())

    private = start_server(is_fresh=True)
    assert private.api().post("/api/v1/shares", FOLDED).status == 201
    assert private.stop() == 0
    private.arguments = ["--database-url", external_database]
    assert "has a database of its own" in refusal_log(private)
    external = start_server("--database-url", external_database, is_fresh=True)
    assert external.api().post("/api/v1/shares", FOLDED).status == 201
    assert external.stop() == 0
    external.arguments = []
    assert "belongs to an external database" in refusal_log(external)
    (external.data_dir / "objects/.database-id").unlink()
    assert "no database with their rows" in refusal_log(external)
    assert len(objects(private)) == len(objects(external)) == 1
    private.arguments = []
    private.start()


def test_a_start_that_waits_for_the_database_can_be_stopped(start_server, external_database):
    import psycopg2

    connection = psycopg2.connect(external_database)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_lock(%s)", [0x50464D31]
        )  # as another server does during a migration
        server = start_server("--database-url", external_database, is_fresh=True, wait=False)
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_for(lambda: (cursor.execute(waiting), cursor.fetchone()[0])[1], 60)
        assert server.stop(20) == 0
    connection.close()


@pytest.mark.long
def test_shares_in_a_remote_database_survive_a_restart(start_server, remote_database):
    import psycopg2

    with pytest.raises(psycopg2.OperationalError, match="password"):
        psycopg2.connect(remote_database.replace("app:", "app:x", 1))
    wrong = run("migrate", "--database-url", remote_database.replace("app:", "app:x", 1))
    assert wrong.returncode != 0 and "p/w" not in wrong.stderr + wrong.stdout
    server = start_server(environment={"PERFOLIO_DATABASE_URL": remote_database}, is_fresh=True)
    response = server.api().post("/api/v1/shares", FOLDED)
    assert response.status == 201, response
    path = f"/api/v1/shares/{response.json()['id']}"
    token = server.token
    assert server.stop() == 0
    server.start()
    assert server.token == token, "the operator's token must survive a restart"
    assert server.anonymous().get(path + "/raw").body == FOLDED
    assert server.api().delete(path).status == 204
    connection = psycopg2.connect(remote_database)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname IN ('app',"
            " 'perfolio_owner', 'perfolio_server', 'perfolio_jobs')"
        )
        assert cursor.fetchall() == [(False, False)] * 4
    connection.close()
    # Neither command lines, which others can read, nor the log contain the password.
    encoded = urllib.parse.quote(EXTERNAL_PASSWORD, safe="")
    for pid in server.descendants():
        arguments = pathlib.Path("/proc", str(pid), "cmdline").read_bytes().decode()
        assert encoded not in arguments and EXTERNAL_PASSWORD not in arguments
    assert encoded not in server.log() and EXTERNAL_PASSWORD not in server.log()


# ---- certificates ----


def served_certificate(server, name="localhost"):
    context = ssl.create_default_context(cafile=str(server.ca_file))
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw, context.wrap_socket(
        raw, server_hostname=name
    ) as connection:
        return connection.getpeercert(binary_form=True)


def openssl(*arguments):
    return subprocess.run(
        ["openssl", *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


def test_the_local_ca_is_constrained_to_this_host(server):
    text = openssl("x509", "-in", server.ca_file, "-noout", "-text")
    anonymous = server.anonymous()
    assert anonymous.get("/ca.crt").body == server.ca_file.read_bytes()
    assert anonymous.get("/api/v1/session").json()["has_local_ca"] is True
    fingerprint = openssl("x509", "-in", server.ca_file, "-noout", "-fingerprint", "-sha256")
    assert (
        f"{server.ca_file}, SHA-256 fingerprint\n                  {fingerprint.split('=')[1]}"
        in server.log()
    )
    assert "CA:TRUE, pathlen:0" in text
    constraints = text.split("X509v3 Name Constraints: critical")[1].split("X509v3")[0]
    assert "DNS:localhost" in constraints
    # BoringSSL (gRPC, Envoy, Bun) does not support constraints on addresses: with such a constraint
    # it rejects certificates that contain an address.
    assert "IP:" not in constraints
    leaf = openssl("x509", "-in", server.data_dir / "tls/server.crt", "-noout", "-text")
    assert "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1" in leaf
    assert "prime256v1" in leaf
    for host in ("localhost", "127.0.0.1", "::1"):
        context = ssl.create_default_context(cafile=str(server.ca_file))
        try:
            raw = socket.create_connection((host, server.port), 10)
        except OSError:
            assert host == "::1"  # IPv6 may be off
            continue
        with raw, context.wrap_socket(raw, server_hostname=host) as connection:
            assert connection.version() in ("TLSv1.2", "TLSv1.3")


def test_grpc_accepts_the_certificate(start_server):
    """gRPC uses BoringSSL. The test needs the Python package grpcio."""
    grpc = pytest.importorskip("grpc")
    server = start_server("--http2", "yes")
    credentials = grpc.ssl_channel_credentials(server.ca_file.read_bytes())
    for host in ("localhost", "127.0.0.1"):
        with grpc.secure_channel(f"{host}:{server.port}", credentials) as channel:
            grpc.channel_ready_future(channel).result(timeout=60)


def make_certificate(folder, name, days=30):
    openssl(
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        folder / f"{name}.key",
        "-out",
        folder / f"{name}.crt",
        "-days",
        days,
        "-subj",
        f"/CN={name}",
        "-addext",
        "subjectAltName=DNS:localhost",
    )
    return folder / f"{name}.crt", folder / f"{name}.key"


def der(path):
    return ssl.PEM_cert_to_DER_cert(path.read_text())


def is_taking_requests(server):
    try:
        connection = server.connect()
        connection.request("GET", "/healthz")
        connection.close()
        return True
    except OSError:
        return False


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def curl_insecurely(server, path):
    return json.loads(
        subprocess.run(["curl", "-sk", server.url + path], check=True, capture_output=True).stdout
    )


def hsts_of(server):
    head = subprocess.run(
        ["curl", "-skI", server.url + "/healthz"], check=True, capture_output=True, text=True
    ).stdout
    return "strict-transport-security" in head.lower()


def test_hsts_is_sent_only_without_the_local_ca(start_server, tmp_path):
    certificate, key = make_certificate(tmp_path, "own")
    port = free_port()
    local = start_server(
        "--listen", f"0.0.0.0:{port}", "--public-url", f"https://perfolio.example.com:{port}"
    )
    assert local.anonymous().get("/api/v1/session").json()["has_local_ca"] is True
    assert not hsts_of(local)
    own = start_server(
        "--tls-cert",
        certificate,
        "--tls-key",
        key,
        "--public-url",
        "https://perfolio.example.com",
        wait=False,
    )
    wait_for(lambda: "Perfolio is ready" in own.log(), 60)
    assert hsts_of(own)


def test_a_configured_certificate_is_reloaded_on_sighup(start_server, tmp_path):
    certificate, key = make_certificate(tmp_path, "first")
    second, second_key = make_certificate(tmp_path, "second")
    server = start_server("--tls-cert", certificate, "--tls-key", key, wait=False)
    wait_for(lambda: "Perfolio is ready" in server.log(), 60)
    assert served_certificate(server) == der(certificate)
    first = der(certificate)
    assert "fingerprint" not in server.log()
    assert curl_insecurely(server, "/ca.crt")["status"] == 404
    assert curl_insecurely(server, "/api/v1/session")["has_local_ca"] is False

    # A certificate without its key is refused, and the server keeps the old one.
    shutil.copy(second, certificate)
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "is not the key of" in server.log())
    assert served_certificate(server) == first
    shutil.copy(second_key, key)
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: served_certificate(server) == der(second))


def test_a_certificate_that_expires_soon_or_lacks_a_name_is_renewed(start_server):
    server = start_server()
    first = served_certificate(server)
    ca = server.ca_file.read_bytes()
    assert server.stop() == 0
    server.start()
    assert served_certificate(server) == first  # it needs no renewal

    assert server.stop() == 0
    tls = server.data_dir / "tls"
    openssl(
        "req",
        "-new",
        "-key",
        tls / "server.key",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1",
        "-out",
        tls / "request.pem",
    )
    openssl(
        "x509",
        "-req",
        "-in",
        tls / "request.pem",
        "-CA",
        tls / "ca.crt",
        "-CAkey",
        tls / "ca.key",
        "-days",
        "10",
        "-copy_extensions",
        "copyall",
        "-out",
        tls / "server.crt",
    )
    expiring = der(tls / "server.crt")
    server.start()
    assert served_certificate(server) not in (first, expiring)
    assert server.ca_file.read_bytes() == ca  # clients keep trusting the same CA
    assert "certificate authority was replaced" not in server.log()

    # A name outside the constraints of the CA requires a new CA.
    assert server.stop() == 0
    server.arguments += ["--public-url", "https://perf.example.org"]
    server.start()
    assert server.ca_file.read_bytes() != ca
    assert re.search(
        r"level=warn .*certificate authority was replaced.*must fetch ca\.crt again.*"
        r"path=\S*/tls/ca\.crt",
        server.log(),
    ), server.log()
    assert "DNS:perf.example.org" in openssl("x509", "-in", tls / "server.crt", "-noout", "-text")
    response = server.api().post("/api/v1/shares", FOLDED)
    assert response.json()["url"].startswith("https://perf.example.org/p/")
    # Clients of that URL, at port 443, connect to the proxy in front of this server.
    assert server.anonymous().get("/api/v1/session").json()["has_local_ca"] is False
    assert server.anonymous().get("/ca.crt").status == 404


def test_certificate_and_token_survive_a_crash_of_the_server(start_server):
    server = start_server()
    token, certificate = server.token, served_certificate(server)
    os.kill(server.child_pid(), signal.SIGKILL)
    wait_for(lambda: "will be restarted" in server.log())
    server.wait_ready()
    assert (server.token, served_certificate(server)) == (token, certificate)


# ---- settings ----


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--wrong", "1"], "there is no flag --wrong"),
        (["--listen", "localhost"], "host:port"),
        (["--listen", "no-such-host.invalid:0"], "no-such-host.invalid"),
        (["--worker-threads", "0"], "outside 1 to"),
        (["--http2", "maybe"], "yes or no"),
        (["--config", "/does/not/exist.ini"], "/does/not/exist.ini"),
        (["--tls-cert", "/does/not/exist.pem"], "go together"),
        (["--tls-cert", "/does/not/exist", "--tls-key", "/does/not/exist"], "/does/not/exist"),
        (["--public-url", "localhost"], "https://"),
    ],
)
def test_invalid_settings_stop_the_start_with_a_message(arguments, message):
    folder = make_folder()
    try:
        result = run("serve", "--data-dir", folder / "data", *arguments)
        assert result.returncode == 2
        assert result.stderr.startswith("perfoliod: ") and message in result.stderr
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_help_and_version_are_printed_and_unknown_subcommands_refused():
    for arguments in (["help"], ["--help"], ["serve", "--help"], ["backup", "--help"]):
        result = run(*arguments)
        assert result.returncode == 0 and "--data-dir" in result.stdout
    assert run("version").stdout.startswith("perfoliod ")
    result = run("sevre")
    assert result.returncode == 2 and "sevre" in result.stderr
    assert run().returncode == 2
    assert run("serve-child").returncode == 2
    assert run("migrate").returncode == 2


def test_the_example_settings_file_is_valid_with_all_settings(tmp_path):
    text = (PERFOLIOD.parents[2] / "deploy/perfolio.ini").read_text()
    lines = [
        line[1:] if line.startswith(";") and " = " in line and not line.startswith("; ") else line
        for line in text.splitlines()
    ]
    (tmp_path / "all.ini").write_text("\n".join(lines))
    result = run("serve", "--config", tmp_path / "all.ini", "--worker-threads", "0")
    assert "outside 1 to" in result.stderr  # the file itself is valid


def test_the_example_settings_file_shows_the_defaults():
    """Commented-out settings of the file have the default values of the help text."""
    text = (PERFOLIOD.parents[2] / "deploy/perfolio.ini").read_text()
    shown = dict(
        line[1:].split(" = ", 1)
        for line in text.splitlines()
        if line.startswith(";") and not line.startswith("; ") and " = " in line
    )
    flag, differing = None, {}
    for line in run("help").stdout.splitlines():
        if line.startswith("  --"):
            flag = line.split()[0][2:]
        default = re.search(r"; default (\S+)$", line)
        if flag in shown and default and shown[flag] != default[1]:
            differing[flag] = shown[flag], default[1]
    assert set(differing) <= {"debuginfod-urls"}, differing  # the example shows one of several URLs
    assert "ingest-threads" in shown


def test_the_manual_page_documents_every_setting():
    page = (PERFOLIOD.parents[2] / "deploy/man/perfoliod.8").read_text()
    flags = [
        line.split()[0][2:] for line in run("help").stdout.splitlines() if line.startswith("  --")
    ]
    assert len(flags) > 20
    for flag in flags:
        assert f".It Fl Fl {flag} Ns" in page, flag


def test_metrics_report_the_resources_in_use(start_server):
    server = start_server("--jobs-interval", "1s", "--max-heavy-memory", "300MiB")
    api = server.api()
    made = [api.post("/api/v1/shares", FOLDED).json()["id"] for _ in range(3)]
    assert api.get(f"/api/v1/shares/{made[0]}/flame").status == 200

    def gauges():
        rows = (
            row.rpartition(" ")
            for row in api.get("/metrics").text.splitlines()
            if not row.startswith("#")
        )
        return {name: float(value) for name, _, value in rows}

    deadline = time.monotonic() + 60
    while not gauges()["perfolio_shares"] and time.monotonic() < deadline:
        time.sleep(0.3)
    seen = gauges()
    assert 0 < seen["perfolio_shares"] <= 3 and seen["perfolio_stored_bytes"] > 0
    assert seen['perfolio_cache_bytes{cache="profiles"}'] > 0
    assert seen['perfolio_cache_bytes{cache="results"}'] > 0
    assert seen['perfolio_cache_bytes{cache="blocks"}'] == 0  # no continuous profiles were sent
    assert seen["perfolio_heavy_memory_bytes"] == 0
    assert seen["perfolio_reports_running"] == seen["perfolio_reports_waiting"] == 0
    assert seen["perfolio_heavy_memory_limit_bytes"] == 300 << 20
    assert seen["perfolio_query_memory_bytes"] == 0
    assert 256 << 20 <= seen["perfolio_query_memory_limit_bytes"] <= 4 << 30
    for pool in ("requests", "jobs"):
        opened = seen[f'perfolio_database_connections{{pool="{pool}"}}']
        assert 1 <= opened <= 8
        assert 0 <= seen[f'perfolio_database_connections_used{{pool="{pool}"}}'] <= opened
    assert 0 <= seen["perfolio_jobs_lag_seconds"] < 60
