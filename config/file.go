package config

import (
	"net/netip"
	"time"
)

// file is the shape of a configuration.
type file struct {
	Data          string                 `yaml:"data"`
	MinFree       size                   `yaml:"min_free"`
	Memory        size                   `yaml:"memory"`
	Listen        string                 `yaml:"listen"`
	Transport     transport              `yaml:"transport"`
	Allow         allow                  `yaml:"allow"`
	Fetch         fetch                  `yaml:"fetch"`
	Delivery      delivery               `yaml:"delivery"`
	Expire        expire                 `yaml:"expire"`
	Health        []string               `yaml:"health"`
	Documents     []document             `yaml:"documents"`
	Sources       map[string]sourceEntry `yaml:"sources"`
	Sinks         map[string]sinkEntry   `yaml:"sinks"`
	Subscriptions []subscription         `yaml:"subscriptions"`
}

type allow struct {
	Fetch []netip.Prefix `yaml:"fetch"`
	Sinks []netip.Prefix `yaml:"sinks"`
}

type fetch struct {
	Timeout     time.Duration `yaml:"timeout"`
	UserAgent   string        `yaml:"user_agent"`
	MinInterval time.Duration `yaml:"min_interval"`
	PerHost     struct {
		Concurrency *int `yaml:"concurrency"`
		Rate        rate `yaml:"rate"`
	} `yaml:"per_host"`
}

type delivery struct {
	Retry       []time.Duration `yaml:"retry"`
	DeadAfter   time.Duration   `yaml:"dead_after"`
	ExpireAfter time.Duration   `yaml:"expire_after"`
}

type expire struct {
	After        failures `yaml:"after"`
	SelectorGone bool     `yaml:"selector_gone"`
}

type document struct {
	URL      string    `yaml:"url"`
	Keep     bool      `yaml:"keep"`
	Interval onlyNever `yaml:"interval"`
}

type subscription struct {
	URL              string    `yaml:"url"`
	Client           string    `yaml:"client"`
	Keywords         []string  `yaml:"keywords"`
	Events           []string  `yaml:"events"`
	Interval         interval  `yaml:"interval"`
	Stem             bool      `yaml:"stem"`
	FilterStopwords  bool      `yaml:"filter_stopwords"`
	IgnoreCase       bool      `yaml:"ignore_case"`
	IgnoreDiacritics bool      `yaml:"ignore_diacritics"`
	Match            string    `yaml:"match"`
	Moved            bool      `yaml:"moved"`
	Language         string    `yaml:"language"`
	SnippetOffset    *int      `yaml:"snippet_offset"`
	Sinks            []string  `yaml:"sinks"`
	Digest           *digest   `yaml:"digest"`
	Select           selectors `yaml:"select"`
	Remove           selectors `yaml:"remove"`
	Ignore           []string  `yaml:"ignore"`
	Confirm          *int      `yaml:"confirm"`
}
