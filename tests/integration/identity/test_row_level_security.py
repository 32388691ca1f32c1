"""Row level security: the database separates tenants even for a statement without a WHERE clause.
"""

import psycopg2
import pytest

from people import Tenant

PROFILE = b"main;work 10\n"
# Tables of the whole server; they have no column tenant_id.
UNSCOPED = {
    "object_folder",
    "object_problem",
    "object_trash",
    "schema_migration",
    "scrub",
    "segment",
    "server_secret",
    "store_writer",
    "symbol_generation_public",
    "symbol_table_public",
}


@pytest.fixture(scope="module")
def tenants(server):
    """Two tenants with rows in every table that a request can fill."""
    made = []
    for _ in range(2):
        tenant = Tenant(server)
        owner = tenant.user("owner")
        owner.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]})
        owner.post("/api/v1/invitations", json={"email": "x@example.com", "role": "viewer"})
        client = tenant.api("share", "read", "ingest")
        assert (
            client.post("/api/v1/profiles", body=PROFILE, headers={"Perfolio-Batch-Id": "x"}).status
            == 200
        )
        assert client.get("/api/v1/sources").status == 200  # makes the server store the sources
        share = client.post(
            "/api/v1/shares", body=PROFILE, headers={"Idempotency-Key": "x"}
        ).json()["id"]
        assert client.post("/api/v1/links", json={"path": f"/p/{share}?q=x"}).status == 201
        assert owner.post(f"/api/v1/shares/{share}/comments", json={"text": "x"}).status == 201
        upload = client.post("/api/v1/uploads", json={"size": len(PROFILE), "filename": "x"}).json()
        assert client.put(f"/api/v1/uploads/{upload['id']}/parts/0", body=PROFILE).status == 204
        tenant.add_user("viewer", password=None)  # creates a login code
        with server.cursor() as cursor:
            cursor.execute(
                "INSERT INTO abuse_report (tenant_id, share_id, reason, address) "
                "VALUES (%s, %s, 'x', '::1')",
                [tenant.id, share],
            )
            cursor.execute(
                "INSERT INTO block (tenant_id, writer_id, object_key, level, bytes, footer_crc, "
                "begin_ns, end_ns, reach_ns, row_count, profile_count, series_count) "
                "SELECT %s, max(id), %s, 1, 1, 1, 0, 0, 0, 1, 1, 1 FROM store_writer",
                [tenant.id, f"block/x/{tenant.id}"],
            )
            cursor.execute(
                "INSERT INTO store_deletion (tenant_id, selector, begin_ns, end_ns) "
                "VALUES (%s, '{pod=\"x\"}', 0, 1)",
                [tenant.id],
            )
            digest = b"\0" * 32
            cursor.execute(
                "INSERT INTO symbol_table (tenant_id, build_id, object_key, bytes, sha256, "
                "quality, "
                "quality_rank, builder_version, broken_units, functions, source) "
                "VALUES (%s, 'ab', %s, 1, %s, 1, 1, 1, 0, 1, 'table')",
                [tenant.id, f"symbols/x{tenant.id}", digest],
            )
            cursor.execute(
                "INSERT INTO debug_file (tenant_id, build_id, kind, object_key, bytes, sha256) "
                "VALUES (%s, 'ab', 'debuginfo', %s, 1, %s)",
                [tenant.id, f"debuginfo/x{tenant.id}", digest],
            )
            cursor.execute(
                "INSERT INTO symbol_need (tenant_id, build_id) VALUES (%s, 'ab')", [tenant.id]
            )
            cursor.execute(
                "INSERT INTO symbol_job (tenant_id, kind, key, build_id, run_after) "
                "VALUES (%s, 'fetch', %s, 'ab', 'infinity')",
                [tenant.id, f"x {tenant.id}"],
            )
            cursor.execute(
                "INSERT INTO debuginfo_policy (tenant_id, mode) VALUES (%s, 'custom')", [tenant.id]
            )
            cursor.execute(
                "INSERT INTO debuginfo_upstream (tenant_id, url, position, auth) "
                "VALUES (%s, 'https://x', 0, 'Authorization: x')",
                [tenant.id],
            )
            cursor.execute(
                "INSERT INTO failed_sign_in (tenant_id, user_id) SELECT tenant_id, id FROM "
                "app_user "
                "WHERE tenant_id = %s",
                [tenant.id],
            )
            cursor.execute(
                "INSERT INTO source_link (tenant_id, url) VALUES (%s, 'https://x/{path}')",
                [tenant.id],
            )
        assert (
            tenant.api("admin")
            .post("/api/v1/retention", json={"query": '{pod="x"}', "keep": "3d"})
            .status
            == 200
        )
        made.append(tenant)
    return made


@pytest.fixture
def as_server(server):
    connection = server.database("perfolio_server")
    with connection.cursor() as cursor:
        yield cursor
    connection.close()


def tenant_tables(server):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT c.table_name FROM information_schema.columns c "
            "JOIN information_schema.tables t USING (table_schema, table_name) "
            "WHERE c.table_schema = 'public' AND c.column_name = 'tenant_id' "
            "AND t.table_type = 'BASE TABLE' ORDER BY 1"
        )
        return [row[0] for row in cursor.fetchall()]


def set_tenant(cursor, value):
    cursor.execute("SELECT set_config('app.tenant', %s, false)", [value])


def readable(cursor, table):
    cursor.execute("SELECT has_any_column_privilege(%s, 'SELECT')", [table])
    return cursor.fetchone()[0]


def test_every_table_without_a_tenant_is_listed(server):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        tables = {row[0] for row in cursor.fetchall()}
    scoped = set(tenant_tables(server)) | {"tenant"}
    assert len(scoped) >= 12
    assert tables - scoped <= UNSCOPED, "add the column tenant_id, or list the table in UNSCOPED"


def test_every_tenant_table_forces_row_level_security(server):
    with server.cursor() as cursor:
        for table in tenant_tables(server) + ["tenant"]:
            cursor.execute(
                "SELECT relrowsecurity, relforcerowsecurity FROM pg_class "
                "WHERE oid = %s::regclass",
                [table],
            )
            assert cursor.fetchone() == (True, True), table
            cursor.execute(
                "SELECT column_name FROM information_schema.columns WHERE is_nullable = 'YES' "
                "AND table_name = %s AND column_name = 'tenant_id'",
                [table],
            )
            assert cursor.fetchall() == [], table


def test_without_a_where_clause_only_the_own_rows_appear(server, tenants, as_server):
    for tenant in tenants:
        set_tenant(as_server, str(tenant.id))
        for table in tenant_tables(server):
            if not readable(as_server, table):
                continue
            as_server.execute(f"SELECT DISTINCT tenant_id FROM {table}")
            assert as_server.fetchall() == [(tenant.id,)], table
        as_server.execute("SELECT id FROM tenant")
        assert as_server.fetchall() == [(tenant.id,)]


@pytest.mark.parametrize("value", [None, "", "0", "999999999"])
def test_without_a_tenant_no_row_appears(server, tenants, as_server, value):
    if value is not None:
        set_tenant(as_server, value)
    for table in tenant_tables(server) + ["tenant"]:
        if readable(as_server, table):
            as_server.execute(f"SELECT count(*) FROM {table}")
            assert as_server.fetchone() == (0,), table


def test_the_role_of_the_server_can_read_all_tables_that_it_needs(server, as_server):
    hidden = [table for table in tenant_tables(server) if not readable(as_server, table)]
    assert hidden == ["ingest_batch", "ingest_series", "login_code"]


def test_rows_of_another_tenant_can_be_neither_changed_nor_inserted(server, tenants, as_server):
    mine, theirs = tenants
    set_tenant(as_server, str(mine.id))
    as_server.execute("UPDATE app_user SET name = 'changed' WHERE tenant_id = %s", [theirs.id])
    assert as_server.rowcount == 0
    as_server.execute("DELETE FROM token WHERE tenant_id = %s", [theirs.id])
    assert as_server.rowcount == 0
    for statement in (
        "INSERT INTO audit_log (tenant_id, actor_kind, action) VALUES (%s, 'user', 'x')",
        "INSERT INTO tenant_usage (tenant_id, slot, bytes_stored) VALUES (%s, 31, 1)",
    ):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            as_server.execute(statement, [theirs.id])
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        as_server.execute("UPDATE app_user SET tenant_id = %s", [theirs.id])


def test_the_name_of_a_user_is_visible_only_in_their_tenant(server, tenants, as_server):
    mine, theirs = (
        tenant.add_user("member", name=f"Somebody {n}")["id"] for n, tenant in enumerate(tenants)
    )
    set_tenant(as_server, str(tenants[0].id))
    as_server.execute("SELECT app_user_shown_name(%s), app_user_shown_name(%s)", [mine, theirs])
    assert as_server.fetchone() == ("Somebody 0", None)


@pytest.mark.parametrize("table", ["block", "segment_tenant"])
def test_a_deletion_without_a_where_clause_affects_only_the_own_profiles(
    server, tenants, as_server, table
):
    mine, theirs = tenants
    with server.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [mine.id])
        own = cursor.fetchone()[0]
        set_tenant(as_server, str(mine.id))
        as_server.execute("BEGIN")
        as_server.execute(
            "INSERT INTO store_deletion (tenant_id, selector, begin_ns, end_ns) "
            "VALUES (%s, '{}', 0, 1)",
            [mine.id],
        )
        as_server.execute(
            f"UPDATE {table} SET deletions = deletions || 7::bigint, leased_by = NULL"
        )
        assert as_server.rowcount == own > 0
        as_server.execute(
            f"UPDATE {table} SET deletions = '{{}}' WHERE tenant_id = %s", [theirs.id]
        )
        assert as_server.rowcount == 0
        as_server.execute("SAVEPOINT before")
        for statement in (
            "INSERT INTO store_deletion (tenant_id, selector, begin_ns, end_ns) "
            f"VALUES ({theirs.id}, '{{}}', 0, 1)",
            f"UPDATE {table} SET tenant_id = {theirs.id}",
            f"DELETE FROM {table}",
            "DELETE FROM store_deletion",
            "UPDATE store_deletion SET done_at = now()",
        ):
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                as_server.execute(statement)
            as_server.execute("ROLLBACK TO before")
        as_server.execute("ROLLBACK")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE app_user SET is_operator = true",
        "UPDATE tenant SET max_bytes_stored = 1",
        "DELETE FROM audit_log",
        "UPDATE audit_log SET action = 'x'",
        "SELECT * FROM server_secret",
        "SELECT * FROM login_code",
        "SELECT auth FROM debuginfo_upstream",
        "UPDATE object_folder SET is_confirmed = false",
        "CREATE TABLE mine (x int)",
        "ALTER TABLE share DISABLE ROW LEVEL SECURITY",
        "DROP POLICY tenant_rows ON share",
        "CREATE TEMP TABLE x AS SELECT * FROM pg_authid",
        "SET ROLE perfolio_owner",
        "SET ROLE perfolio_jobs",
    ],
)
def test_the_role_of_the_server_cannot_extend_its_privileges(tenants, as_server, statement):
    set_tenant(as_server, str(tenants[0].id))
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        as_server.execute(statement)


def test_the_roles_are_neither_owners_nor_superusers(server):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication "
            "FROM pg_roles WHERE rolname IN ('perfolio_server', 'perfolio_jobs') "
            "ORDER BY 1"
        )
        assert cursor.fetchall() == [
            ("perfolio_jobs",) + (False,) * 5,
            ("perfolio_server",) + (False,) * 5,
        ]
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner "
            "WHERE r.rolname IN ('perfolio_server', 'perfolio_jobs')"
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT r.rolname, m.rolname FROM pg_auth_members a "
            "JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member "
            "WHERE m.rolname IN ('perfolio_server', 'perfolio_jobs')"
        )
        assert cursor.fetchall() == []


def test_definer_functions_fix_their_search_path_and_are_not_public(server):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT p.oid::regprocedure::text, p.proconfig, "
            "has_function_privilege('public', p.oid, 'EXECUTE') FROM pg_proc p "
            "JOIN pg_namespace n ON n.oid = p.pronamespace "
            "WHERE n.nspname = 'public' AND p.prosecdef"
        )
        functions = cursor.fetchall()
    assert len(functions) >= 8
    for name, settings, is_public in functions:
        assert settings and "search_path=public, pg_temp" in settings, name
        assert not is_public, name
