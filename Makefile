.PHONY: build test race lint fuzz sim campaign bench cover ci

build: ## the binary, in bin/
	go build -o bin/vokter-stream ./cmd/vokter-stream

test: ## what a newcomer runs
	go test ./...

race: ## everything under the race detector, in random order
	go test -race -shuffle=on ./...

lint: ## golangci-lint with .golangci.yml
	.ci/lint

fuzz: ## 5,000 inputs for every fuzz target
	.ci/fuzz 5000x

sim: ## the seeded simulator, 2,000 seeds
	go test ./test/sim -run TestSeeds -count=1 -sim.seeds=2000

campaign: ## the crash campaign: the real binary under SIGKILL
	go run ./test/campaign --for 30s

bench: ## the benchmarks whose ratios the documentation gives
	go test -run '^$$' -bench . -benchtime 1s ./...

cover: ## statement coverage, as a page
	go test -coverprofile=cover.out ./... && go tool cover -html=cover.out -o cover.html

ci: ## all that must hold
	.ci/run
