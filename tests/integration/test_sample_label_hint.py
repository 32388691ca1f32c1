"""A selector finds series; one that names a label of samples says how to filter by it."""

from people import Tenant
from test_limits import END
from test_store import BEGIN

from pprof_maker import Maker  # its folder is in the path since test_limits


def make_labelled(endpoints):
    maker = Maker([("cpu", "nanoseconds")])
    for endpoint in endpoints:
        location = maker.location([(maker.function(f"serve{endpoint}"), 1)])
        maker.sample([location], [10], [("endpoint", endpoint)])
    maker.scalars(time=BEGIN, duration=10**9, period=1, period_type=("cpu", "nanoseconds"))
    return maker.bytes()


def test_a_selector_of_a_sample_label_says_how_to_filter(server):
    client = Tenant(server).api("ingest", "read")
    assert client.post("/api/v1/profiles", make_labelled(["/a", "/b"]), query={"label": "service_name=app"}).status == 200

    def query(selector, **more):
        answer = client.get("/api/v1/query", query={
            "query": "process_cpu:cpu" + selector, "start": str(BEGIN), "end": str(END), "report": "top", **more})
        assert answer.status == 200, answer
        return [row["name"] for row in answer.json()["functions"]], answer.headers.get("perfolio-warning")

    for _ in range(2):  # the second time it is an answer that was kept
        names, warning = query('{service_name="app",endpoint="/a"}')
        assert names == []
        assert warning == ("no series has the label endpoint: to filter by a label of samples, use the parameter "
                           "label=endpoint=VALUE (perfolio query --label endpoint=VALUE)")
    answer = client.get("/api/v1/query_range", query={
        "query": 'process_cpu:cpu{service_name="app",endpoint="/a"}', "start": str(BEGIN), "end": str(END)})
    assert answer.json()["series"] == [] and answer.headers["perfolio-warning"] == warning
    assert query('{service_name="app"}', label="endpoint=/a") == (["serve/a"], None)
    assert query('{service_name="none"}') == ([], None), "the label is there"
    assert query('{endpoint!="/a"}')[1] is None and query('{endpoint=""}')[1] is None
