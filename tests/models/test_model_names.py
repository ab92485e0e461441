"""What a text names, before anybody is asked."""

import pytest

from tonnage.kernel.errors import InvalidInput
from tonnage.models import kind, names
from tonnage.models.names import Reference

HUB = "https://huggingface.co"


@pytest.mark.parametrize(
    ("text", "repository", "revision", "file"),
    [
        (f"{HUB}/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None, None),
        (f"{HUB}/Qwen/Qwen3-8B/", "Qwen/Qwen3-8B", None, None),
        (f"{HUB}/Qwen/Qwen3-8B?library=vllm#use", "Qwen/Qwen3-8B", None, None),
        ("http://www.huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None, None),
        ("huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None, None),
        ("hf.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None, None),
        ("hf.co/bartowski/X-GGUF:Q4_K_M", "bartowski/X-GGUF", None, "Q4_K_M"),
        (f"{HUB}/Qwen/Qwen3-8B/tree/main", "Qwen/Qwen3-8B", "main", None),
        (f"{HUB}/Qwen/Qwen3-8B/tree/main/original", "Qwen/Qwen3-8B", "main", "original"),
        (f"{HUB}/Qwen/Qwen3-8B/tree/refs%2Fpr%2F3", "Qwen/Qwen3-8B", "refs/pr/3", None),
        (f"{HUB}/Qwen/Qwen3-8B/tree/refs/pr/3", "Qwen/Qwen3-8B", "refs/pr/3", None),
        (f"{HUB}/Qwen/Qwen3-8B/blob/main/config.json", "Qwen/Qwen3-8B", "main", "config.json"),
        (f"{HUB}/a/b/resolve/v1.0/x/y.gguf?download=true", "a/b", "v1.0", "x/y.gguf"),
        (f"{HUB}/a/b/raw/main/config.json", "a/b", "main", "config.json"),
        (f"{HUB}/a/b/commit/0123abc", "a/b", "0123abc", None),
        (f"{HUB}/a/b/discussions/7", "a/b", None, None),
        (f"{HUB}/gpt2", "gpt2", None, None),
        (f"{HUB}/gpt2/tree/main", "gpt2", "main", None),
        (f"{HUB}/api/models/a/b", "a/b", None, None),
        ("hf:Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None, None),
        ("hf:gpt2", "gpt2", None, None),
        ("hf://Qwen/Qwen3-8B@main", "Qwen/Qwen3-8B", "main", None),
        ("hf://models/a/b", "a/b", None, None),
        ("hf://a/b@main/sub/config.json", "a/b", "main", "sub/config.json"),
        ("HF:a/b@refs/pr/1", "a/b", "refs/pr/1", None),
        ("hf:a/b@v1:Q8_0", "a/b", "v1", "Q8_0"),
    ],
)
def test_a_hub_name_is_read_from_every_form(text: str, repository: str, revision: str | None, file: str | None):
    assert names.explicit(text) == Reference("hub", repository, revision, file)


@pytest.mark.parametrize(
    ("text", "revision", "file"),
    [
        ("https://modelscope.cn/models/Qwen/Qwen3-8B", None, None),
        ("https://www.modelscope.cn/models/Qwen/Qwen3-8B/summary", None, None),
        ("https://modelscope.com/models/Qwen/Qwen3-8B/files", None, None),
        ("modelscope.cn/models/Qwen/Qwen3-8B/", None, None),
        ("https://modelscope.cn/models/Qwen/Qwen3-8B/file/view/master/config.json?status=1", "master", "config.json"),
        ("https://modelscope.cn/models/Qwen/Qwen3-8B/resolve/v1/a.gguf", "v1", "a.gguf"),
        ("https://modelscope.cn/api/v1/models/Qwen/Qwen3-8B", None, None),
        ("modelscope:Qwen/Qwen3-8B", None, None),
        ("ms:Qwen/Qwen3-8B@v2", "v2", None),
    ],
)
def test_a_modelscope_name_is_read_from_every_form(text: str, revision: str | None, file: str | None):
    assert names.explicit(text) == Reference("modelscope", "Qwen/Qwen3-8B", revision, file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen3-8B", Reference("hub", "Qwen/Qwen3-8B")),
        ("Qwen/Qwen3-8B@main", Reference("hub", "Qwen/Qwen3-8B", "main")),
        ("a/b:Q4_K_M", Reference("hub", "a/b", None, "Q4_K_M")),
        ("a/b:x/y-00001-of-00002.gguf", Reference("hub", "a/b", None, "x/y-00001-of-00002.gguf")),
        ("a/b@rev:Q8_0", Reference("hub", "a/b", "rev", "Q8_0")),
    ],
)
def test_a_bare_owner_and_name_is_a_hub_repository(text: str, expected: Reference):
    assert names.repository(text) == expected
    assert expected.text == text


@pytest.mark.parametrize("text", ["llama-3.1-8b", "a/b/c", "a b/c", "", "a/", "/b", "C:\\models\\x"])
def test_other_texts_are_no_repository(text: str):
    assert names.repository(text) is None
    assert names.explicit(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example/Qwen/Qwen3-8B",
        "https://huggingface.co.evil.example/Qwen/Qwen3-8B",
        "https://huggingface.co@evil.example/a/b",
        "https://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "ftp://huggingface.co/a/b",
        "https://[::1/a/b",
        "https://huggingface.co/",
        "https://huggingface.co/datasets/a/b",
        "https://huggingface.co/spaces/a/b",
        "https://modelscope.cn/models/onlyowner",
        "https://huggingface.co/a/..%2F..%2Fetc",
        "https://huggingface.co/a/b/tree/..",
        "https://huggingface.co/a/b/blob/main/..%2F..%2Fsecret",
        "https://huggingface.co/a/b/blob/main/x%00y",
        "hf:",
        "hf:a/b/c d",
        "hf:a--b/c",
        "hf:a/b@-x",
        "hf:a/b@x//y",
        "modelscope:nameonly",
    ],
)
def test_what_could_lead_elsewhere_is_refused(text: str):
    with pytest.raises(InvalidInput):
        names.explicit(text)


def test_a_mirror_is_the_hub_once_the_environment_says_so(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidInput, match="HF_ENDPOINT"):
        names.explicit("https://hf-mirror.com/a/b")
    monkeypatch.setenv("HF_ENDPOINT", "https://hf-mirror.com/")
    assert names.explicit("https://hf-mirror.com/a/b") == Reference("hub", "a/b")
    assert names.endpoint("hub") == "https://hf-mirror.com"


def test_modelscope_is_found_where_its_own_variables_say(monkeypatch: pytest.MonkeyPatch):
    assert names.endpoint("modelscope") == "https://modelscope.cn"
    monkeypatch.setenv("MODELSCOPE_DOMAIN", "ms.example")
    assert names.endpoint("modelscope") == "https://ms.example"
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:7/")
    assert names.endpoint("modelscope") == "http://127.0.0.1:7"
    assert names.explicit("http://127.0.0.1:7/models/a/b") == Reference("modelscope", "a/b")


def test_kind_says_where_read_would_look_and_asks_nobody():
    assert kind("./x") == "path"
    assert kind("hf:a/b") == "hub"
    assert kind("someone/unheard-of") == "hub"
    assert kind("modelscope:a/b") == "modelscope"
    assert kind("no such thing") == "unknown"
