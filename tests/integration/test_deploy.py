"""What is shipped beside the programs: units, completion, what runs in Kubernetes."""

import re
import shutil
import subprocess

import pytest
import yaml

from conftest import BUILD, ROOT

DEPLOY = ROOT / "deploy"
RIGHTS = {"BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "SYSLOG"}


def options_of_agent():
    text = subprocess.run([BUILD / "perfolio-agent", "--help"], check=True, capture_output=True, text=True,
                          timeout=60).stdout
    names = set(re.findall(r"^ +(?:-., )?--([a-z][a-z-]+)", text, re.M)) - {"usage"}
    assert len(names) > 20
    return names


@pytest.mark.parametrize("file", ["perfolio-agent.bash", "_perfolio-agent", "perfolio-agent.fish"])
def test_completion_of_the_agent_has_its_options_and_no_others(file):
    text = (DEPLOY / "completion" / file).read_text()
    pattern = {"perfolio-agent.bash": r"[ ']--([a-z][a-z-]+)", "_perfolio-agent": r"^ +'\*?--([a-z-]+)",
               "perfolio-agent.fish": r" -l ([a-z-]+)"}[file]
    assert set(re.findall(pattern, text, re.M)) == options_of_agent()


def test_the_manual_has_every_option_of_the_agent():
    page = (DEPLOY / "man" / "perfolio-agent.8").read_text()
    assert {name for name in options_of_agent() if f"Fl Fl {name}" not in page} == set()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("unit, most", [("perfolio-agent", 3.6), ("perfoliod", 6.0)])
def test_units_are_hardened(tmp_path, unit, most):
    path = tmp_path / f"{unit}.service"
    path.write_text((DEPLOY / path.name).read_text().replace("@PREFIX@", "/usr"))
    text = subprocess.run(["systemd-analyze", "security", "--offline=yes", path], capture_output=True,
                          text=True, timeout=60).stdout
    assert float(re.search(r"exposure level for \S+: ([0-9.]+)", text)[1]) <= most
    # A builder of symbol tables makes its sandbox inside of the unit's.
    assert {"seccomp", "landlock_restrict_self"} <= set(path.read_text().split())


def test_the_daemon_set_has_the_agents_rights_and_options_and_no_others():
    parts = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "perfolio-agent.yaml").read_text()))
    by_kind = {part["kind"]: part for part in parts}
    assert by_kind["ClusterRole"]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    pod = by_kind["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert pod["hostPID"] and not pod.get("hostNetwork")
    assert context["capabilities"] == {"drop": ["ALL"], "add": context["capabilities"]["add"]}
    assert set(context["capabilities"]["add"]) == RIGHTS
    assert context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True
    assert not context.get("privileged")
    used = {re.match(r"--([a-z-]+)=", argument)[1] for argument in container["args"]}
    assert used <= options_of_agent()
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    unit = (DEPLOY / "perfolio-agent.service").read_text()
    assert {name[4:] for name in re.search(r"CapabilityBoundingSet=(.*)", unit)[1].split()} == RIGHTS
