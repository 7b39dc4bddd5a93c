# What a developer and CI run. Every module of go.work is meant by the package pattern "work".
.DEFAULT_GOAL := help

# Much of these waits: the longest first.
LONGEST = $$(scripts/modules store | sed 's,^,./,') ./cmd/holdfast ./proof/traps

# The packages that have tests: go test says of every other one that it has none.
TESTED = $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' work)

GOLANGCI = $$(GOWORK=off go -C tools tool -n golangci-lint)

.PHONY: help
help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s  %s\n", $$1, $$2 }' Makefile

.PHONY: fmt
fmt: ## format all Go files
	gofmt -s -w .

.PHONY: lint
lint: ## gofmt, golangci-lint, and comments and prose of at most 100 columns, changing nothing
	@scripts/unformatted
	@scripts/columns .
	@# One cache for each checkout: a remembered finding names the file where it was found, with the
	@# comment that allows it, and that file may be gone with another checkout.
	@GOLANGCI_LINT_CACHE=$$(go env GOCACHE)/golangci-lint$(CURDIR) scripts/each $(GOLANGCI) run --show-stats=false --allow-parallel-runners ./...

.PHONY: test
test: ## the tests of all modules; no C compiler needed (REDIS_SERVER=/path takes another server)
	@scripts/need redis-server
	@CGO_ENABLED=0 scripts/timed tests go test -p 4 -timeout 10m $(LONGEST) $(TESTED)

.PHONY: cover
cover: ## how much of the library those tests run, by module; fails below 80 %
	@scripts/need redis-server
	@CGO_ENABLED=0 scripts/timed cover scripts/cover $(LONGEST) $(TESTED)

.PHONY: check
check: ## what CI runs, and certain: lint, vet, and the tests with -race
	@scripts/need redis-server gcc
	@scripts/timed fetch scripts/fetch
	@scripts/timed lint $(MAKE) --no-print-directory lint
	@scripts/timed vet go vet work
	@# Nothing is compiled beside a test.
	@scripts/timed compile sh -c 'go list -race -test -export work >/dev/null'
	@scripts/timed tests go test -race -count=1 -vet=off -p 4 -timeout 30m $(LONGEST) $(TESTED)

.PHONY: check-release
check-release: ## before a tag: long simulations, Go 1.25, other systems, each module alone, lowest versions, a consumer, vulnerabilities
	@scripts/timed fetch scripts/fetch
	@scripts/timed 'simulate, always the same runs' env HOLDFAST_PROOF=1 go -C proof test -count=1 ./simulate
	@scripts/timed simulate $(MAKE) --no-print-directory simulate RUNS=50 SEED=1
	@scripts/timed 'simulate a quorum' $(MAKE) --no-print-directory simulate RUNS=4 SEED=1 QUORUM=1
	@for stage in workflows oldest systems alone lowest consumer install vulnerabilities; do scripts/timed $$stage scripts/$$stage || exit 1; done

.PHONY: quick
quick: ## half a minute: the library, the engine, the scripts, and one adapter on the embedded server
	go test . ./internal/engine ./internal/native
	go test -run 'TestConformance/miniredis$$' ./proof/clock

.PHONY: mutants
mutants: ## breaks the library on purpose, some hundred times, and prints which check noticed, in each of RUNS=n runs (1)
	@scripts/need redis-server faketime
	go -C proof run ./mutant/table -runs $(or $(RUNS),1)

.PHONY: demo
demo: ## the noon lottery: eight processes, one draw a round
	go run ./cmd/holdfast demo

.PHONY: pictures
pictures: ## the pictures in docs/: the demo and top on a terminal, and the dashboard in a browser
	@scripts/need redis-server tmux chromium
	go run ./tools/pictures docs
	shots=$$(mktemp -d) && trap 'rm -r "$$shots"' EXIT && HOLDFAST_SCREENSHOTS=$$shots HOLDFAST_PROOF=1 go -C proof test -count=1 ./dashboard && \
		for picture in docs/dashboard-*.png; do cp "$$shots/$${picture#docs/}" docs/ || exit 1; done

.PHONY: bench
bench: ## side by side with other libraries, a table with every ratio
	go run ./bench

.PHONY: simulate
simulate: ## RUNS=n hours of trouble on a fake clock (100), from SEED= on, QUORUM=1 over a quorum; a failed one is told with its seed
	HOLDFAST_RUNS=$(or $(RUNS),100) HOLDFAST_SEED=$(SEED) HOLDFAST_QUORUM=$(QUORUM) go -C proof test -count=1 -v -timeout 0 -run '^TestSimulate$$' ./simulate

.PHONY: proof
proof: ## every fault, each with its own numbers: single server, Sentinel, Cluster, quorum; PART=name for one part
	@scripts/need redis-server faketime gcc tmux
	@scripts/proof $(PART)

.PHONY: release-dry
release-dry: ## the files of a release in dist/: archives, deb, rpm, tap, image, SBOM, checksums; publishes nothing
	@scripts/release --files

.PHONY: torture
torture: ## MINUTES=n (10) of processes that are killed, stopped and cut off, from SEED=
	HOLDFAST_TORTURE_SECONDS=$$((60 * $(or $(MINUTES),10))) HOLDFAST_SEED=$(SEED) go -C proof test -count=1 -v -timeout 0 -run '^TestTorture$$' .
