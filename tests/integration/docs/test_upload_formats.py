"""Upload formats: each list contains all formats of lib/profile/formats/format_list.h.

The lists are the description of the API, the manual, the README, the help text, fuzzers and
samples. The pages are built from that file (web/test/model/text/upload_formats.test.ts). The tests
need no server. CONTRIBUTING.md describes how to add a format.
"""

import collections
import re
import subprocess

import pytest
import yaml

import sample_profiles
from conftest import PERFOLIO, ROOT

Format = collections.namedtuple("Format", "id name title extension media_type content module")


def read_formats():
    text = (ROOT / "lib/profile/formats/format_list.h").read_text().replace("\\\n", "\n")
    rows = re.findall(r"^ +ROW\(([^)]*)\)", text, re.M)
    return [Format(*(cell.strip().strip('"') for cell in row.split(","))) for row in rows]


FORMATS = read_formats()


def plain(text):
    """text without markup, in one line."""
    return " ".join(text.replace("`", "").split())


def missing_titles(text):
    return [format.title for format in FORMATS if format.title not in plain(text)]


def test_the_list_of_formats_has_unique_rows():
    assert len(FORMATS) >= 5
    assert len({format.name for format in FORMATS}) == len(FORMATS)


def test_the_api_describes_all_formats():
    document = yaml.load((ROOT / "api/openapi.yaml").read_text(), Loader=yaml.CSafeLoader)
    names = [format.name for format in FORMATS]
    assert document["components"]["schemas"]["Share"]["properties"]["format"]["enum"] == names
    ingest = document["components"]["parameters"]["IngestFormat"]["schema"]["enum"]
    assert [name for name in names if name not in ingest] == []
    assert missing_titles(document["paths"]["/api/v1/shares"]["post"]["description"]) == []


def test_the_readme_names_all_formats():
    assert missing_titles((ROOT / "README.md").read_text()) == []


def test_the_manual_names_all_formats():
    page = ROOT / "deploy/man/perfolio.1"
    shown = subprocess.run(
        ["mandoc", "-T", "ascii", page], capture_output=True, check=True, text=True
    ).stdout
    assert missing_titles(re.sub(".\b", "", shown)) == []


def test_the_help_of_push_names_all_formats():
    shown = subprocess.run(
        [PERFOLIO, "push", "--help"], capture_output=True, check=True, text=True, timeout=60
    ).stdout
    assert missing_titles(shown) == []


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_a_format_has_its_fuzzer_seeds_and_sample(format):
    assert (ROOT / f"tests/fuzz/fuzz_{format.module}.c").is_file()
    corpus = ROOT / "tests/fuzz/corpus"
    assert list((corpus / f"fuzz_{format.module}").glob("seed-*"))
    assert list((corpus / "fuzz_format").glob(f"seed-{format.module}*"))
    assert format.name in [name for _, _, name, _ in sample_profiles.every_format()]
