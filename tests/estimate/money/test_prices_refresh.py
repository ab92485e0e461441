"""`tonnage prices refresh`: SkyPilot's lists of machines become dated prices; what cannot be one is named, and
nothing old is lost.
"""

import json
import os
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import tonnage
from schema_forms import validate
from tonnage.catalogue import accelerator, refreshed, skypilot
from tonnage.catalogue.offers import cheapest, offers
from tonnage.catalogue.prices import forget, is_stale, origin, prices
from tonnage.cli import main

INFO = "\"{'Gpus': [{'Name': '%s', 'Manufacturer': 'NVIDIA', 'Count': 8, 'MemoryInfo': {'SizeInMiB': %s}}]}\""
AWS = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    "AvailabilityZone,Arch\n"
)
GCP = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n"
LAMBDA = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"


def aws(instance="p5.48xlarge", name="H100", count="8.0", mib=81920, price="40", spot="", region="us-east-1", zone="a"):
    return f"{instance},{name},{count},192.0,2048.0,{INFO % (name, mib)},{price},{spot},{region},{zone},x86_64\n"


def on_lambda(instance="gpu_8x_h100_sxm5", name="H100", count="8.0", mib=81920, price="32", region="us-east-1"):
    return f"{instance},{name},{count},208.0,1800.0,{price},{region},{INFO % (name, mib)},\n"


def gcp(instance="", name="", count="", price="", spot="", zone="us-central1-a"):
    return f"{instance},96.0,680.0,{name},{count},,{zone[:-2]},{zone},{price},{spot}\n"


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A folder of the user's own, with nothing remembered from before or after."""
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.setenv("TONNAGE_CONFIG", str(folder))
    forget()
    yield folder
    forget()


@pytest.fixture
def lists(tmp_path):
    """Writes vms.csv of a cloud into a folder that looks like the catalogue's."""

    def write(cloud, text, root="catalogue"):
        path = tmp_path / root / cloud / "vms.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    write.root = tmp_path / "catalogue"
    return write


@pytest.fixture
def refresh(config, lists, capsys):
    """Runs the command on those lists; the status, the document, and what went to stderr."""

    def call(*arguments, place=None):
        forget()
        capsys.readouterr()
        status = main(
            ["prices", "refresh", "--from", str(place or lists.root), "--as-of", "2026-11-20", *arguments, "--json"]
        )
        printed = capsys.readouterr()
        forget()
        return status, json.loads(printed.out), printed.err

    return call


def report(document, cloud="aws"):
    return next(each for each in document["clouds"] if each["cloud"] == cloud)


def of(provider, **which):
    return [
        price
        for price in prices()
        if price.provider == provider and all(getattr(price, k) == v for k, v in which.items())
    ]


# ---- what a list becomes ----


def test_a_row_becomes_an_on_demand_and_a_spot_price_with_its_region_source_and_day(config, lists, refresh):
    path = lists("aws", AWS + aws(price="55.04", spot="21.5"))
    status, document, _ = refresh()
    validate(document, "RefreshDocument")
    assert status == 0 and report(document)["prices"] == 2
    found = of("AWS", accelerator="H100-SXM-80GB", as_of="2026-11-20")
    assert {(row.kind, row.usd_per_hour, row.accelerators, row.region) for row in found} == {
        ("on-demand", 55.04, 8, "us-east-1"),
        ("spot", 21.5, 8, "us-east-1"),
    }
    assert {row.source for row in found} == {str(path)} and {row.currency for row in found} == {"USD"}
    assert {origin(row) for row in found} == {"refreshed"}


def test_the_memory_in_gpu_info_tells_forty_from_eighty_gigabytes(config, lists, refresh):
    lists(
        "aws",
        AWS
        + aws("p4d.24xlarge", "A100", mib=40960, price="22")
        + aws("p4de.24xlarge", "A100-80GB", mib=81920, price="27"),
    )
    lists(
        "lambda",
        LAMBDA
        + on_lambda("gpu_1x_a100_sxm4", "A100", "1", mib=80, price="1.6")
        + on_lambda("gpu_1x_a100", "A100", "1", mib=40, price="1.3"),
    )
    refresh()
    assert {(row.instance, row.accelerator) for row in prices() if origin(row) == "refreshed"} == {
        ("p4d.24xlarge", "A100-SXM-40GB"),
        ("p4de.24xlarge", "A100-SXM-80GB"),
        ("gpu_1x_a100_sxm4", "A100-SXM-80GB"),
        ("gpu_1x_a100", "A100-PCIe-40GB"),
    }


def test_what_the_table_does_not_name_or_cannot_tell_apart_is_reported_and_not_guessed(config, lists, refresh):
    lists("aws", AWS + aws() + aws("g5g.xlarge", "T4g", "1", 16384, "0.4") + aws("odd", "H100", "8", mib=40960))
    lists("vast", AWS + aws("any", "H100", "1", price="2") + aws("4090", "RTX4090", "1", 24576, "0.3"))
    _, document, _ = refresh()
    assert report(document)["unknown"] == {"T4g": 1, "H100": 1} and report(document)["accelerators"] == [
        "H100-SXM-80GB"
    ]
    assert report(document, "vast")["unknown"] == {"H100": 1}
    assert [row.accelerator for row in of("Vast.ai") if origin(row) == "refreshed"] == ["RTX-4090"]


def test_every_name_of_the_table_is_one_of_our_catalogue(config):
    table = skypilot.names()
    for name in (*table.name, *table.slice):
        assert accelerator(name.accelerator).name == name.accelerator
        assert not set(getattr(name, "clouds", [])) - set(skypilot.clouds())
    assert {host.skypilot for host in table.host} <= {name.skypilot for name in table.name}


def test_of_the_zones_of_a_region_the_cheapest_counts(config, lists, refresh):
    lists("aws", AWS + aws(spot="20", zone="a") + aws(spot="18", zone="b") + aws(spot="25", zone="c"))
    refresh()
    assert [row.usd_per_hour for row in of("AWS", kind="spot", accelerator="H100-SXM-80GB")] == [18]


def test_what_costs_the_same_in_every_region_holds_everywhere(config, lists, refresh):
    other = on_lambda("gpu_1x_h100_pcie", count="1", price="3", region="us-west-1")
    lists("lambda", LAMBDA + on_lambda() + on_lambda(region="us-west-1") + other)
    refresh()
    found = {row.instance: row.region for row in of("Lambda") if origin(row) == "refreshed"}
    assert found == {"gpu_8x_h100_sxm5": "all", "gpu_1x_h100_pcie": "us-west-1"}


def test_google_clouds_accelerators_are_paid_with_the_machine_that_holds_them(config, lists, refresh):
    machine = gcp("a2-highgpu-8g", price="5.9", spot="2.9")
    lists(
        "gcp",
        GCP
        + machine
        + gcp(name="A100", count="8", price="23.5", spot="9.3")
        + gcp(name="T4", count="1", price="0.35")
        + gcp(name="H100", count="8", price="80"),
    )
    _, document, _ = refresh()
    assert {
        (row.kind, row.usd_per_hour) for row in of("Google Cloud", instance="a2-highgpu-8g", as_of="2026-11-20")
    } == {("on-demand", 29.4), ("spot", 12.2)}
    assert report(document, "gcp")["left_out"] == {"have no price of the machine that holds the accelerators": 2}


def test_slices_of_tpus_are_counted_in_chips(config, lists, refresh):
    rows = "".join(
        gcp(name=name, count="1", price=price)
        for name, price in (("tpu-v5p-8", "16.8"), ("tpu-v6e-8", "21.6"), ("tpu-v5p-6912", "14515"))
    )
    lists("gcp", GCP + rows)
    _, document, _ = refresh()
    found = {
        row.accelerator: (row.accelerators, row.price_per_accelerator_hour)
        for row in of("Google Cloud", as_of="2026-11-20")
    }
    assert found == {"TPU-v5p": (4, 4.2), "TPU-v6e": (8, 2.7)}
    assert report(document, "gcp")["left_out"] == {"rent slices of more than 16 TPUs": 1}


# ---- which price is looked up ----


def test_refreshed_prices_stand_for_older_shipped_ones_of_the_same_provider_accelerator_and_kind_alone(
    config, lists, refresh
):
    before = {(row.accelerator, row.kind) for row in of("AWS")}
    lists("aws", AWS + aws(price="16"))
    refresh("--as-of", "2026-11-22")
    found = of("AWS", accelerator="H100-SXM-80GB")
    assert [row.usd_per_hour for row in found if row.kind == "on-demand"] == [16]
    assert {origin(row) for row in of("AWS") if row.accelerator != "H100-SXM-80GB"} == {"shipped"}
    assert {(row.accelerator, row.kind) for row in of("AWS")} == before
    assert cheapest(offers("h100", kind="on-demand")).usd_per_hour == 16
    bill = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB").to_dict()["question"]["price"]["value"]
    assert bill.startswith("AWS p5.48xlarge")


def test_shipped_prices_that_are_fresher_than_the_refreshed_ones_win(config, lists, refresh):
    lists("aws", AWS + aws(price="16"))
    refresh("--as-of", "2025-01-01")
    assert 16 not in [row.usd_per_hour for row in of("AWS", accelerator="H100-SXM-80GB", kind="on-demand")]


def test_prices_of_the_users_own_files_come_before_refreshed_ones(config, lists, refresh):
    lists("aws", AWS + aws(price="8"))
    refresh()
    (config / "prices" / "mine.toml").write_text(
        '[[price]]\nprovider = "Us"\ninstance = "box"\naccelerator = "H100-SXM-80GB"\naccelerators = '
        '8\nregion = "all"\nkind = "on-demand"\n'
        'usd_per_hour = 90\nsource = "here"\nas_of = "2026-11-21"\n'
    )
    forget()
    assert cheapest(offers("h100", kind="on-demand")).provider == "Us" and origin(prices()[0]) == "own"


def test_the_list_of_prices_says_where_each_comes_from_and_what_is_stale(config, lists, refresh, capsys):
    lists("aws", AWS + aws(price="16"))
    refresh("--as-of", "2026-11-20")
    main(["prices", "h100", "--as-of", "2027-02-18"])
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.endswith("refreshed")]
    assert "90 d " in line and any(line.endswith("shipped") for line in out.splitlines())
    main(["prices", "h100", "--provider", "aws", "--kind", "on-demand", "--as-of", "2027-02-19", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["prices"]
    assert (row["origin"], row["own"], row["stale"]) == ("refreshed", False, True)
    assert is_stale(of("AWS", accelerator="H100-SXM-80GB", kind="on-demand")[0], date(2027, 2, 19))


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (aws(price="-3"), "line 3: Price must be above 0 and at most 8,000 USD an hour for 8. Got '-3'"),
        (aws(price="nan"), "line 3: Price must be above 0"),
        (aws(price="inf"), "Price must be above 0"),
        (aws(price="0"), "Price must be above 0"),
        (aws(price="cheap"), "Got 'cheap'"),
        (aws(price="1e9"), "Got '1e9'"),
        (aws(spot="-1"), "line 3: SpotPrice must be above 0"),
        (aws(count="1000000"), "line 3: AcceleratorCount must be a whole number from 1 to 1024. Got '1000000'"),
        (aws(count="2.5"), "AcceleratorCount must be a whole number"),
        (aws(count=""), "AcceleratorCount"),
        (aws(count="-8"), "AcceleratorCount"),
        (aws(count="nan"), "AcceleratorCount"),
        (aws(region=""), "line 3: Region is empty"),
        ("p5,H100\n", "line 3: the row has 2 fields, the header 11"),
        (aws().strip() + ",one more\n", "the row has 12 fields, the header 11"),
    ],
)
def test_a_row_that_cannot_be_is_named_by_file_line_and_field_and_the_others_are_read(
    config, lists, refresh, row, says
):
    path = lists("aws", AWS + aws("p4de.24xlarge", "A100-80GB") + row + aws("p5en.48xlarge", "H200", mib=144384))
    status, document, _ = refresh()
    (said,) = report(document)["malformed"]
    assert status == 0 and said.startswith(f"{path}, line 3: ") and says in said
    assert {"A100-SXM-80GB", "H200-SXM-141GB"} <= set(report(document)["accelerators"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b"InstanceType,Price\nx,1\n",
            "has no column AcceleratorName, AcceleratorCount, Region. It has 'InstanceType, Price'",
        ),
        (b"", "has no column InstanceType"),
        (b"<html>no list</html>", "is no vms.csv of SkyPilot's catalogue"),
        (b"\xff\xfe\x00", "is not UTF-8 text: invalid start byte at byte 0"),
        (AWS.encode(), "has no price of an accelerator of our catalogue"),
        ((AWS + aws(price="-1")).encode(), "has no price of an accelerator of our catalogue. "),
        (AWS.encode() + b'"' + b"x" * 200_000, "field larger than field limit"),
        (AWS.encode() + aws().encode() + b"a,\0b\n", "line 3"),
    ],
    ids=range(8),
)
def test_a_file_that_is_no_list_leaves_the_old_prices_as_they_were(config, lists, refresh, content, says):
    path = lists("aws", AWS + aws(price="16"))
    refresh()
    before = (config / "prices" / "refreshed.json").read_bytes()
    path.write_bytes(content)
    status, document, err = refresh()
    if status == 0:  # Python 3.11 and later read the byte 0 as any other
        assert says in report(document)["malformed"][0]
        return
    assert status == 64 and str(path) in err and says in err and "is as it was" in err
    assert (config / "prices" / "refreshed.json").read_bytes() == before


def test_a_file_of_gigabytes_is_refused_unread(config, lists, refresh, monkeypatch):
    monkeypatch.setattr(skypilot, "LARGEST", 1000)
    lists("aws", AWS + aws() * 20)
    status, _, err = refresh()
    assert status == 64 and "vms.csv is larger than" in err


def test_one_cloud_that_fails_loses_nothing_of_its_own_or_of_the_others(config, lists, refresh):
    lists("aws", AWS + aws(price="16"))
    lists("lambda", LAMBDA + on_lambda(price="20"))
    refresh()
    lists("aws", "broken")
    lists("lambda", LAMBDA + on_lambda(price="24"))
    status, document, _ = refresh()
    assert status == 0
    assert not report(document)["read"] and "no vms.csv" in report(document)["problem"]
    assert report(document, "lambda")["moved"] == 1
    found = {(row.provider, row.usd_per_hour) for row in prices() if origin(row) == "refreshed"}
    assert found == {("AWS", 16), ("Lambda", 24)}


def test_offers_that_are_gone_are_dropped_but_stay_where_rows_could_not_be_read(config, lists, refresh):
    lists("aws", AWS + aws(price="16") + aws("p4de.24xlarge", "A100-80GB", price="20"))
    refresh("--as-of", "2026-11-01")
    lists("aws", AWS + aws(price="17") + aws("p4de.24xlarge", "A100-80GB", price="none"))
    assert report(refresh()[1])["kept"] == 1
    found = {row.instance: (row.usd_per_hour, row.as_of) for row in refreshed.load(refreshed.path()).clouds[0].price}
    assert found == {"p5.48xlarge": (17, "2026-11-20"), "p4de.24xlarge": (20, "2026-11-01")}
    lists("aws", AWS + aws(price="17"))
    assert report(refresh()[1])["gone"] == 1
    assert [row.instance for row in refreshed.load(refreshed.path()).clouds[0].price] == ["p5.48xlarge"]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(config, lists, refresh, monkeypatch):
    lists("aws", AWS + aws(price="16"))
    refresh()
    before = (config / "prices" / "refreshed.json").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    lists("aws", AWS + aws(price="17"))
    status, _, err = refresh()
    assert status == 64 and "No space left on device" in err
    assert (config / "prices" / "refreshed.json").read_bytes() == before
    assert [path.name for path in (config / "prices").iterdir()] == ["refreshed.json"]


def test_a_file_that_is_not_ours_is_not_written_over(config, lists, refresh, tmp_path):
    lists("aws", AWS + aws())
    other = tmp_path / "notes.json"
    other.write_text('{"mine": 1}')
    status, _, err = refresh("--output", str(other))
    assert status == 64 and "Move it away or delete it" in err and other.read_text() == '{"mine": 1}'


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"clouds": 1}',
        '{"schema": "other"}',
        '{"clouds":[{"cloud":"aws","provider":"AWS","source":"x","price":[{"instance":"a","accelerator":"L4","accelerators":0,"region":"r","kind":"spot","usd_per_hour":1,"as_of":"2026-01-01"}]}]}',
    ],
)
def test_a_broken_file_is_named_by_every_answer_that_needs_prices(config, text, capsys):
    (config / "prices").mkdir()
    (config / "prices" / "refreshed.json").write_text(text)
    assert main(["prices", "h100"]) == 64
    assert "refreshed.json, which `tonnage prices refresh` writes" in capsys.readouterr().err


def test_the_output_can_be_another_file_and_says_that_it_is_not_looked_up(config, lists, refresh, tmp_path, capsys):
    lists("aws", AWS + aws(price="16"))
    assert refresh("--output", str(tmp_path / "new" / "prices.json"))[1]["looked_up"] is False
    assert not (config / "prices").exists() and not [row for row in prices() if origin(row) == "refreshed"]
    main(["prices", "refresh", "--from", str(lists.root), "--output", str(tmp_path / "new" / "prices.json")])
    assert "note: prices are not looked up in it, but in " in capsys.readouterr().out


# ---- where it is read ----


def test_a_checkout_is_read_in_its_newest_version_and_one_file_says_whose_it_is(config, lists, refresh, tmp_path):
    lists("aws", AWS + aws(price="16"), "sky/catalogs/v8")
    path = lists("aws", AWS + aws(price="17"), "sky/catalogs/v10")
    assert report(refresh(place=tmp_path / "sky")[1])["source"] == str(path)
    assert report(refresh(place=path)[1])["prices"] == 1
    loose = tmp_path / "list.csv"
    loose.write_text(AWS + aws())
    assert "say whose it is with --cloud" in refresh(place=loose)[2]
    assert report(refresh("--cloud", "aws", place=loose)[1])["provider"] == "AWS"


def test_the_day_of_a_file_is_that_on_which_it_was_changed(config, lists, capsys):
    path = lists("aws", AWS + aws())
    os.utime(path, (1_760_000_000, 1_760_000_000))
    assert main(["prices", "refresh", "--from", str(path)]) == 0
    assert "2025-10-09" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cloud", "asw"), "Did you mean 'aws'"),
        (("--cloud", ","), "--cloud is empty"),
        (("--as-of", "today"), "must be a date such as"),
        (("--from", "/nowhere/at/all"), "must be an address, a folder or a file that there is"),
        (("--from", "ftp://x/y"), "must be an http or https address"),
    ],
)
def test_wrong_words_are_answered_with_what_would_be_right(config, lists, capsys, arguments, says):
    lists("aws", AWS + aws())
    assert main(["prices", "refresh", "--from", str(lists.root), *arguments]) == 64
    assert says in capsys.readouterr().err


@pytest.fixture
def server(monkeypatch):
    """Files by their path on this machine's own address, and which were asked for."""
    from huggingface_hub import constants

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.server.asked.append(self.path)
            status, body = self.server.files.get(self.path, (404, b"no"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.files, made.asked, made.url = {}, [], f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 2.0)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield made
    made.shutdown()
    made.server_close()


def test_an_address_is_asked_for_each_cloud_and_what_does_not_answer_is_said(config, server, refresh):
    server.files["/v8/aws/vms.csv"] = (200, (AWS + aws(price="16")).encode())
    server.files["/v8/gcp/vms.csv"] = (500, b"")
    status, document, _ = refresh("--cloud", "aws,gcp,lambda", place=f"{server.url}/v8/")
    assert status == 0 and server.asked == ["/v8/aws/vms.csv", "/v8/gcp/vms.csv", "/v8/lambda/vms.csv"]
    assert report(document)["source"] == f"{server.url}/v8/aws/vms.csv"
    assert report(document, "gcp")["problem"] == f"{server.url}/v8/gcp/vms.csv answers 500."
    assert report(document, "lambda")["problem"] == f"there is no {server.url}/v8/lambda/vms.csv."
    assert [row.source for row in prices() if origin(row) == "refreshed"] == [f"{server.url}/v8/aws/vms.csv"]


def test_an_answer_that_is_too_large_or_a_host_that_is_not_there_is_an_error_and_not_a_wait(
    config, server, refresh, monkeypatch
):
    server.files["/aws/vms.csv"] = (200, (AWS + aws() * 100).encode())
    monkeypatch.setattr(skypilot, "LARGEST", 1000)
    status, _, err = refresh("--cloud", "aws", place=server.url)
    assert status == 64 and "sends more than 1,000 bytes" in err
    assert "cannot reach 127.0.0.1" in refresh("--cloud", "aws", place="http://127.0.0.1:9/v8")[2]


def test_nothing_but_refresh_asks_the_network(config, server, monkeypatch, capsys):
    from tonnage.cli.forms import prices_refresh

    monkeypatch.setattr(prices_refresh, "URL", server.url)
    assert main(["prices", "h100"]) == 0 and main(["train", "llama-3.1-8b", "--on", "h100"]) == 3
    assert server.asked == []
    assert Path(refreshed.path()).exists() is False


def test_a_day_to_come_has_no_prices(config, lists, capsys):
    assert main(["prices", "refresh", "--from", str(lists.root), "--as-of", "2099-01-01"]) == 64
    said = capsys.readouterr().err
    assert "--as-of must be" in said and "Got 2099-01-01." in said and not refreshed.path().exists()
