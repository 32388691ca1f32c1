"""The files of deploy/: systemd units, shell completion, manual pages, Kubernetes, alert rules."""

import re
import shutil
import subprocess
import time

import pytest
import yaml

from conftest import BUILD, ROOT

DEPLOY = ROOT / "deploy"
CAPABILITIES = {"BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "SYSLOG"}


def options_of_agent():
    text = subprocess.run(
        [BUILD / "perfolio-agent", "--help"], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    names = set(re.findall(r"^ +(?:-., )?--([a-z][a-z-]+)", text, re.M)) - {"usage"}
    assert len(names) > 20
    return names


@pytest.mark.parametrize("file", ["perfolio-agent.bash", "_perfolio-agent", "perfolio-agent.fish"])
def test_shell_completion_lists_exactly_the_options_of_the_agent(file):
    text = (DEPLOY / "completion" / file).read_text()
    pattern = {
        "perfolio-agent.bash": r"[ ']--([a-z][a-z-]+)",
        "_perfolio-agent": r"^ +'\*?--([a-z-]+)",
        "perfolio-agent.fish": r" -l ([a-z-]+)",
    }[file]
    assert set(re.findall(pattern, text, re.M)) == options_of_agent()


@pytest.mark.parametrize(
    "shell, file",
    [("bash", "perfolio-agent.bash"), ("zsh", "_perfolio-agent"), ("fish", "perfolio-agent.fish")],
)
def test_shell_completion_of_the_agent_is_the_output_of_the_program(shell, file):
    command = [BUILD / "perfolio-agent", "completion", shell]
    printed = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    path = DEPLOY / "completion" / file
    assert printed == path.read_bytes(), f"run: perfolio-agent completion {shell}"


def test_completion_of_the_agent_needs_a_known_shell():
    for words, message in [([], "give a shell"), (["csh"], "no completion for csh")]:
        result = subprocess.run(
            [BUILD / "perfolio-agent", "completion", *words],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode != 0 and result.stdout == "" and message in result.stderr


def test_the_manual_page_documents_every_option_of_the_agent():
    page = (DEPLOY / "man" / "perfolio-agent.8").read_text()
    assert {name for name in options_of_agent() if f"Fl Fl {name}" not in page} == set()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("unit, most", [("perfolio-agent", 3.6), ("perfoliod", 6.0)])
def test_systemd_units_are_hardened(tmp_path, unit, most):
    path = tmp_path / f"{unit}.service"
    path.write_text((DEPLOY / path.name).read_text().replace("@PREFIX@", "/usr"))
    text = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", path],
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert float(re.search(r"exposure level for \S+: ([0-9.]+)", text)[1]) <= most
    # A builder of symbol tables creates its own sandbox inside that of the unit.
    assert {"seccomp", "landlock_restrict_self"} <= set(path.read_text().split())


def test_the_daemon_set_grants_only_the_capabilities_that_the_agent_needs():
    parts = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "perfolio-agent.yaml").read_text()))
    by_kind = {part["kind"]: part for part in parts}
    assert by_kind["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    ]
    pod = by_kind["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert pod["hostPID"] and not pod.get("hostNetwork")
    assert context["capabilities"] == {"drop": ["ALL"], "add": context["capabilities"]["add"]}
    assert set(context["capabilities"]["add"]) == CAPABILITIES
    assert (
        context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True
    )
    assert not context.get("privileged")
    used = {re.match(r"--([a-z-]+)=", argument)[1] for argument in container["args"]}
    assert used <= options_of_agent()
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    unit = (DEPLOY / "perfolio-agent.service").read_text()
    assert {
        name[4:] for name in re.search(r"CapabilityBoundingSet=(.*)", unit)[1].split()
    } == CAPABILITIES


@pytest.fixture(scope="module")
def promtool(tmp_path_factory):
    """promtool from PATH, or unpacked from Debian's package. Installing the package would start a
    server."""
    found = shutil.which("promtool")
    if found:
        return found
    folder = tmp_path_factory.mktemp("prometheus")
    try:
        subprocess.run(
            ["apt-get", "download", "prometheus"],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=120,
        )
        (package,) = folder.glob("prometheus_*.deb")
        subprocess.run(
            ["dpkg-deb", "-x", package, folder], check=True, capture_output=True, timeout=120
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        pytest.skip("there is no promtool, and Debian's package cannot be downloaded")
    return folder / "usr/bin/promtool"


@pytest.mark.long
def test_alert_rules_are_valid_and_each_fires_on_its_condition(promtool, tmp_path):
    rules = DEPLOY / "prometheus-rules.yaml"
    checked = subprocess.run(
        [promtool, "check", "rules", rules], capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked
    cases = tmp_path / "rules_test.yaml"
    cases.write_text(
        (ROOT / "tests/integration/docs/prometheus_rules_test.yaml")
        .read_text()
        .replace("RULES", str(rules))
    )
    tested = subprocess.run(
        [promtool, "test", "rules", cases], capture_output=True, text=True, timeout=120
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    alerts = {
        rule["alert"]
        for group in yaml.safe_load(rules.read_text())["groups"]
        for rule in group["rules"]
    }
    assert {
        case["alertname"]
        for part in yaml.safe_load(cases.read_text())["tests"]
        for case in part["alert_rule_test"]
        if case["exp_alerts"]
    } == alerts


def test_alert_rules_use_metrics_that_the_server_exports(admin):
    """Each metric also has the labels that the rules name. A busy server may refuse a request."""
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        (name,) = re.findall(r"perfolio_[a-z_]+", rule["expr"])
        deadline = time.monotonic() + 60
        while not (lines := re.findall(rf"^{name}(?:{{.*}})? ", admin.get("/metrics").text, re.M)):
            assert time.monotonic() < deadline, name
            time.sleep(1)
        for label in set(re.findall(r"\w+", "".join(re.findall(r"by \((.*?)\)", rule["expr"])))) - {
            "job",
            "instance",
        }:
            assert all(f'{label}="' in line for line in lines), (name, label)
