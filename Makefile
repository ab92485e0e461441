# Every target sets up what it needs in .venv (git-ignored) with plain venv and pip.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TORCH := torch==2.13.0
JOBS ?= 2
PLANS ?= 1e6
SOAK ?= 0
SLICE ?= 0/1
BEFORE ?=

.PHONY: demo test quick check locale lint types bench bench-sweep bench-trace validate rows bands rates site-priors accuracy all soak brute docs schema clean peers bench-speed bench-web bench-page page-pictures house format golden texts durations prepared counts site dist

demo: .venv/core.done  ## three questions on the shipped catalogue: core install, no GPU, no torch, no network
	$(BIN)/python scripts/demo.py

test: .venv/test.done  ## all tests
	$(BIN)/python -m pytest -n $(JOBS)

quick: .venv/quick.done  ## the tests that need no torch
	$(BIN)/python -m pytest -n $(JOBS) --ignore tests/trace

durations: .venv/test.done  ## all tests, and tests/durations.json: seconds of every file; prints the slowest tenth
	$(BIN)/python scripts/durations.py -n $(JOBS)

check: lint types quick  ## what every commit passes

lint: .venv/quick.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/quick.done  ## lays the source out and fixes what the linter can fix by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

house: .venv/core.done  ## figures of the source with their goals: import circles, private imports, files that one question enters
	$(BIN)/python scripts/house.py

types: .venv/test.done  ## with torch, whose types the tracer needs
	$(BIN)/mypy -n $(JOBS)

bench: .venv/quick.done  ## writes benchmarks/results.json
	$(BIN)/python benchmarks/run.py

bench-trace: .venv/test.done  ## what traces cost: writes benchmarks/results_trace.json
	$(BIN)/python benchmarks/trace.py

bench-sweep: .venv/soak.done  ## what sweeps cost on processes and on Ray: writes benchmarks/results_sweep.json (10^7 plans: PLANS=1e7)
	$(BIN)/python benchmarks/sweep.py --plans $(PLANS)
	$(BIN)/python scripts/write_docs.py

bench-web: .venv/quick.done  ## what the web server bears, by wrk on loopback: writes benchmarks/results_web.json (a soak of 10 minutes: SOAK=600)
	$(BIN)/python benchmarks/web.py --soak $(SOAK)

bench-page: .venv/quick.done  ## how long the page takes to redraw, in Debian's Chromium: writes benchmarks/results_page.json
	$(BIN)/python benchmarks/page.py

page-pictures: .venv/quick.done  ## the pictures of docs/page.md, in Debian's Chromium
	$(BIN)/python benchmarks/page_pictures.py

peers: .venv/core.done  ## other tools on the same questions: installs them into .venv-peers and writes docs/peers.md
	$(BIN)/python benchmarks/peers.py

bench-speed: .venv/test.done  ## every goal of speed, and other tools in the same run: writes docs/speed.md (another checkout beside it: BEFORE=FOLDER)
	$(BIN)/python benchmarks/speed.py $(if $(BEFORE),--before $(BEFORE))

validate: .venv/core.done  ## predictions against published measurements
	$(BIN)/tonnage validate validation/params.yaml validation/train_memory.yaml validation/train_speed.yaml validation/infer_speed.yaml validation/infer_memory.yaml validation/gguf_sizes.yaml validation/collectives.yaml

rows: .venv/core.done  ## validation/*.yaml, from what sources wrote in validation/sources/
	$(BIN)/python scripts/rows --rebuild

bands: .venv/core.done  ## error bands and the pages of accuracy, from the measurements and the estimator as they are
	$(BIN)/python scripts/fit_bands.py
	$(BIN)/python scripts/accuracy.py

rates: .venv/quick.done  ## rates of kernels, links and hosts, from published speeds
	$(BIN)/python scripts/fit_rates.py
	$(BIN)/python scripts/fit_serving.py --recent
	$(BIN)/python scripts/accuracy.py

site-priors: .venv/test.done  ## how errors vary among sites, which corrections by own runs start from; and what these bring
	$(BIN)/python scripts/fit_site.py
	$(BIN)/python scripts/write_docs.py

accuracy: .venv/core.done  ## docs/accuracy.md with its plot, and docs/accuracy_details.md
	$(BIN)/python scripts/accuracy.py

soak: .venv/soak.done  ## the long tier: more examples of every property, and a Ray cluster
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n $(JOBS) -m "soak or not soak"

golden: .venv/quick.done  ## answers of all verbs and faces against the recorded ones of tests/golden
	$(BIN)/python scripts/golden.py

texts: .venv/quick.done  ## the short text of each verb against tests/render/golden_text (scripts/short_texts.py --write records)
	$(BIN)/python scripts/short_texts.py

brute: .venv/quick.done  ## command lines over the whole catalogue, with counts and reproducers (a tenth of it: SLICE=0/10; another seed: SEED=any)
	PYTHONPATH=tests $(BIN)/python -m brute.run --processes $(JOBS) --slice $(SLICE) $(if $(SEED),--seed $(SEED))

site: .venv/quick.done  ## the site of docs/ to build/site/html: runs the commands that its pages show
	$(BIN)/python scripts/build_site.py

dist: .venv/quick.done  ## wheel and sdist in dist/, the wheel tried in an empty environment: README's questions, the demo, a served page
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python scripts/try_wheel.py dist/*.whl

docs schema: .venv/core.done  ## the generated pages and the JSON Schema
	$(BIN)/python -m tonnage.documents.schema
	$(BIN)/python scripts/option_types.py
	$(BIN)/python scripts/accuracy.py
	$(BIN)/python scripts/write_docs.py
	$(BIN)/python scripts/questions.py
	$(BIN)/python scripts/terminal_pictures.py
	$(BIN)/python benchmarks/peers.py --recorded
	$(BIN)/python benchmarks/speed.py --recorded

prepared: .venv/core.done  ## packs of shipped facts and bytecode, as `pip install -e .` makes them: after a pull or many edits, for a fast start
	$(BIN)/python -m tonnage.kernel.prepared

counts: .venv/core.done  ## modules, calls and blocks of fixed questions beside their records (scripts/counts.py --write records)
	$(BIN)/python scripts/counts.py

locale: .venv/quick.done  ## the catalogues of src/tonnage/language: sorted, laid out and compiled
	$(BIN)/python scripts/extract_messages.py
	$(BIN)/python scripts/write_locale.py

all: check test bench validate

.venv/core.done: pyproject.toml hatch_build.py
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/quick.done: .venv/core.done
	$(PIP) -e '.[test,dev,docs]'
	touch $@

# torch first and pinned, so that no resolver fetches a build for accelerators
.venv/test.done: .venv/quick.done
	$(PIP) '$(TORCH)'
	$(PIP) -e '.[test,dev,docs,trace]' '$(TORCH)'
	touch $@

.venv/soak.done: .venv/test.done
	$(PIP) -e '.[test,dev,docs,trace,cluster]' '$(TORCH)'
	touch $@

clean:
	rm -rf .venv .venv-peers src/tonnage/prepared dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
