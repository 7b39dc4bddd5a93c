# What a developer and CI run. Every module of go.work is meant by the package pattern "work".
.DEFAULT_GOAL := help

GOLANGCI = $$(GOWORK=off go -C tools tool -n golangci-lint)

.PHONY: help
help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: fmt
fmt: ## format all Go files
	gofmt -s -w .

.PHONY: lint
lint: ## gofmt and golangci-lint, changing nothing
	@scripts/unformatted
	scripts/each $(GOLANGCI) run ./...

.PHONY: test
test: ## all tests of all modules; no C compiler needed (REDIS_SERVER=/path takes another server)
	@scripts/need redis-server
	CGO_ENABLED=0 go test -p 4 -timeout 10m ./redisstore ./cmd/holdfast ./rueidisstore ./valkeystore work # as check does

.PHONY: check
check: fetched lint ## all that CI runs: lint, longer tests with -race, Go 1.25, other systems, each module alone, lowest versions
	@scripts/need redis-server gcc
	go vet work
	@go list -race -test -export work >/dev/null # nothing is compiled beside a test
	HOLDFAST_CHECK=1 go test -race -count=1 -p 4 -timeout 30m ./redisstore ./rueidisstore ./valkeystore work # much of it waits; the longest first
	@$(MAKE) --no-print-directory simulate RUNS=50 SEED=1
	@$(MAKE) --no-print-directory simulate RUNS=4 SEED=1 QUORUM=1
	scripts/oldest
	scripts/systems
	scripts/alone
	scripts/lowest
	scripts/consumer
	scripts/vulnerabilities

.PHONY: fetched
fetched:
	@scripts/fetch

.PHONY: mutants
mutants: ## breaks the library on purpose, some hundred times, and prints which check noticed, in each of RUNS=n runs (1)
	@scripts/need redis-server faketime
	go -C proof run ./mutant/table -runs $(or $(RUNS),1)

.PHONY: noise
noise: ## PKG=./directory, RUN=regexp: its tests, RUNS=n times (10), while goroutines are held up at random, from SEED= on
	go -C proof run ./noise -runs $(or $(RUNS),10) -seed $(or $(SEED),1) $(or $(PKG),.) '$(RUN)'

.PHONY: demo
demo: ## the noon lottery: eight processes, one draw a round
	go run ./cmd/holdfast demo

.PHONY: bench
bench: ## side by side with other libraries, a table with every ratio
	go run ./bench

.PHONY: simulate
simulate: ## RUNS=n hours of trouble on a fake clock (100), from SEED= on, QUORUM=1 over a quorum; a failed one is told with its seed
	HOLDFAST_RUNS=$(or $(RUNS),100) HOLDFAST_SEED=$(SEED) HOLDFAST_QUORUM=$(QUORUM) go -C proof test -count=1 -v -timeout 0 -run '^TestSimulate$$' ./simulate

.PHONY: proof
proof: ## every fault, each with its own numbers: single server, Sentinel, Cluster, quorum
	@scripts/need redis-server faketime
	HOLDFAST_CHECK=1 HOLDFAST_PROOF=1 go -C proof test -count=1 -v -timeout 20m ./...
	HOLDFAST_CHECK=1 HOLDFAST_PROOF=1 go -C redisstore test -count=1 -v -parallel 1 -timeout 20m -run 'TestQuorumConformance|TestFailover|TestSplitBrain|TestClusterChangesUnderLocks|TestStoppedMasterDelaysNoOther|TestSlotOnItsWay|TestSharded'
	HOLDFAST_CHECK=1 HOLDFAST_PROOF=1 go -C rueidisstore test -count=1 -v -timeout 20m -run 'TestQuorumConformance' .
	HOLDFAST_PROOF=1 go -C cmd/holdfast test -count=1 -v -timeout 20m -run '^Test(Demo|RunAtManyServers|RunKilled|RunLeavesNothing|RunMany|RunServerStops)$$' .
	@$(MAKE) --no-print-directory simulate RUNS=200
	@$(MAKE) --no-print-directory simulate RUNS=50 QUORUM=1

.PHONY: torture
torture: ## MINUTES=n (10) of processes that are killed, stopped and cut off, from SEED=
	HOLDFAST_TORTURE_SECONDS=$$((60 * $(or $(MINUTES),10))) HOLDFAST_SEED=$(SEED) go -C proof test -count=1 -v -timeout 0 -run '^TestTorture$$' .
