"""The current version serves the data of each released version (tests/upgrade/versions.txt)
unchanged."""

import shutil
import sys

import pytest

from conftest import PERFOLIOD, ROOT, Server, home_of_folders, make_folder

sys.path.insert(0, str(ROOT / "tests" / "upgrade"))
import dataset  # noqa: E402
import old_version  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not old_version.has_history(), reason="no git history to build from"),
]
VERSIONS = old_version.listed()


@pytest.fixture
def program(commit):
    try:
        return old_version.build(commit)
    except old_version.Missing as missing:
        pytest.fail(str(missing))


@pytest.fixture
def server(program, session_folder, cluster_template):
    """A server that first runs the old version. cluster_template makes password hashes cheap in
    both versions."""
    folder = make_folder(home_of_folders())
    instance = Server(folder / "data", ["--jobs-interval", "1s"], program=program).start()
    yield instance
    instance.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("version, commit", VERSIONS)
def test_the_listed_commit_has_the_listed_version(version, commit):
    if version == "unreleased":
        pytest.skip("the commit is not of a release")
    try:
        assert old_version.text_of(commit, "VERSION").strip() == version
    except old_version.Missing as missing:
        pytest.fail(str(missing))


@pytest.mark.parametrize("version, commit", VERSIONS)
def test_migrations_of_a_release_are_unchanged(version, commit):
    """Databases store the checksums of applied migrations."""
    try:
        commit = old_version.full_id(commit)
    except old_version.Missing as missing:
        pytest.fail(str(missing))
    for name in old_version.files_of(commit, "api/migrations"):
        if not name.endswith(".sql"):
            continue
        assert (ROOT / name).read_text() == old_version.text_of(
            commit, name
        ), f"{name} is part of {version}: put it back and make a new file"


@pytest.mark.parametrize("version, commit", VERSIONS)
def test_data_of_a_release_are_served_unchanged(server, version, commit, tmp_path):
    data = dataset.make(server, tmp_path)
    old = dataset.observe(data)
    assert server.stop() == 0, server.log()[-4000:]
    server.program = PERFOLIOD
    server.start()
    new = dataset.observe(data)
    assert not (lost := dataset.differences(old, new)), "\n".join(lost)
    dataset.finish(data)
    assert server.stop() == 0, server.log()[-4000:]
