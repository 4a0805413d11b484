# The Executable Transformer. `make book` builds it, `make test` tests it; each target makes the environment it needs.

PYTHON ?= python3
VENV ?= .venv
NB ?=
PDF ?=
STUDENTS ?=
ROWS ?= models agreement run generation byte_pairs shakespeare live
READY := $(VENV)/.ready
PY := $(VENV)/bin/python
PAGES := _build/html
# A slow machine may need minutes for a training; only one that hangs is stopped.
NBVAL = $(PY) -m pytest --nbval --nbval-current-env --nbval-cell-timeout 400 -n 2 --dist loadfile --no-loadscope-reorder

# The same vector instructions and one thread wherever lessons run: their numbers are compared digit by digit.
export ATEN_CPU_CAPABILITY = avx2
export OMP_NUM_THREADS = 1

.DEFAULT_GOAL := help
.PHONY: help book serve test evidence lab notebooks lesson student slides moodle canvas claim doubt trials elsewhere lint format bench board live rehearsal hub clean

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1 \t/p' Makefile | expand -t 20

$(READY): requirements.txt lib/exformer/pyproject.toml lib/exformer_lessons/pyproject.toml
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet $$(grep -o '^torch==[^ ]*' requirements.txt)
	$(PY) -m pip install --quiet -r requirements.txt
	$(PY) -m pip install --quiet --no-deps --no-build-isolation -e lib/exformer -e lib/exformer_lessons
	@touch $@

book: $(READY) ## build the book, say where it is
	@rm -rf $(PAGES)
	$(VENV)/bin/jupyter-book build . -W -n --keep-going --all --quiet
	@echo "The book: file://$(CURDIR)/$(PAGES)/book/index.html"

serve: book ## build, then serve the book at http://localhost:8000
	$(PY) -m http.server --bind 127.0.0.1 --directory $(PAGES) 8000

test: $(READY) ## library, lessons and pages: everything but evidence and lab
	$(NBVAL) --doctest-modules --ignore notebooks/evidence --ignore notebooks/labs notebooks tests lib

evidence: $(READY) ## run the evidence of all lessons again: outputs must be the stored ones
	$(NBVAL) notebooks/evidence

lab: $(READY) ## run the lab again, with two published models that it installs once: outputs must be the stored ones
	$(NBVAL) notebooks/labs

notebooks: $(READY) ## run lessons and store their outputs: all, or NB=03_self_attention
	$(PY) book/_tools/run_notebooks.py $(NB)

lesson: $(READY) ## write the skeleton of a lesson: NAME=slug TITLE="…" QUESTION="…?"
	$(PY) book/_tools/new_lesson.py "$(NAME)" --title "$(TITLE)" --question "$(QUESTION)"

student: $(READY) ## lessons without outputs and solutions, to hand out: all, or NB=05, in _build/student
	$(PY) book/_tools/student.py $(NB)

slides: $(READY) ## slides with speaker notes, and each figure as SVG: all, or NB=05, in _build/slides; PDF=--pdf prints them
	$(PY) book/_tools/slides.py $(NB) $(PDF)

moodle: $(READY) ## votes, pre-test, tests, questions and weeks for Moodle: all, or NB=05, in _build/moodle
	$(PY) book/_tools/moodle.py $(NB)

canvas: $(READY) ## the same questions for Canvas, as QTI: all, or NB=05, in _build/canvas
	$(PY) book/_tools/canvas.py $(NB)

claim: $(READY) ## reproduce a row of the ledger: ID=A18
	$(PY) -m exformer_lessons claim $(ID)

doubt: $(READY) ## sabotage what each claim depends on, all or NB=05: it must be refused
	nice $(PY) -m exformer_lessons doubt $(NB)

trials: $(READY) ## try what depends on a training with other seeds, steps, rates, orders: what is missing, all or NB=05
	nice $(PY) -m exformer_lessons trials $(NB)

elsewhere: $(READY) ## run lessons as another processor would round, all or NB=05: outputs must be the stored ones
	MKL_CBWR=COMPATIBLE $(NBVAL) $$($(PY) -m exformer_lessons.notebook $(NB))

lint: $(READY) ## style, spelling, types, order of imports
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(VENV)/bin/pyrefly check --python-interpreter-path $(PY)

format: $(READY) ## mend what can be mended
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(READY) ## scores of the models; time and memory beside PyTorch and others: all, or ROWS="byte_pairs shakespeare"
	$(if $(filter models,$(ROWS)),OMP_NUM_THREADS=2 $(PY) -m exformer bench --json bench/results/models.json)
	set -e; for row in $(filter-out models,$(ROWS)); do $(PY) bench/$$row.py; done

board: $(READY) ## the CPU-minute board, 40 minutes: loss after 60 and 180 s of two cores, each entry with five seeds
	$(PY) bench/board.py

live: $(READY) ## 1,000 greedy texts of each model in both browsers, six minutes: each must be the library's
	nice $(PY) tests/book/live/many_texts.py

rehearsal: $(READY) ## install the wheels as a student does, without a network: a new home, a check, lesson 01 in JupyterLab
	$(PY) book/_tools/release.py
	$(PY) -m pip download --quiet --dest _build/wheelhouse $$(grep -o '^torch==[^ ]*' requirements.txt) \
		_build/release/exformer-*.whl "$$(ls _build/release/exformer_lessons-*.whl)[lab]"
	nice $(PY) book/_tools/rehearse.py _build/release --wheelhouse _build/wheelhouse --json book/rehearsal.json

hub: $(READY) ## run a JupyterHub, and do a lesson as two of its students: from PyPI, with npm; as root, STUDENTS="ada grace" and a PYTHON that they can run
	$(PY) book/_tools/release.py
	$(PYTHON) -m venv _build/hub
	_build/hub/bin/python -m pip install --quiet $$(grep -o '^torch==[^ ]*' requirements.txt)
	_build/hub/bin/python -m pip install --quiet --constraint requirements.txt _build/release/*.whl jupyterlab jupyterhub==6.1.1
	npm install --silent --prefix _build/hub configurable-http-proxy@5.3.0
	PATH="$(CURDIR)/_build/hub/node_modules/.bin:$$PATH" nice _build/hub/bin/python book/_tools/rehearse_hub.py $(STUDENTS) --json book/hub/rehearsal.json

clean: ## remove what was built, the environment too
	rm -rf _build $(VENV) .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
