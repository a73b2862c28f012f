// Package plugins lists what a configuration of the binary may name: a new kind of sink, source, reader of other
// authors or transport is registered here. The readers that every Router has stand in readers.Builtin, and its fetchers
// in buildStages of the root.
package plugins

import (
	_ "embed"

	transport "github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/discord"
	"github.com/vokter/vokter/sinks/email"
	"github.com/vokter/vokter/sinks/exec"
	"github.com/vokter/vokter/sinks/gotify"
	"github.com/vokter/vokter/sinks/inbox"
	"github.com/vokter/vokter/sinks/kafka"
	"github.com/vokter/vokter/sinks/matrix"
	"github.com/vokter/vokter/sinks/mattermost"
	"github.com/vokter/vokter/sinks/ntfy"
	"github.com/vokter/vokter/sinks/route"
	"github.com/vokter/vokter/sinks/slack"
	"github.com/vokter/vokter/sinks/stdout"
	"github.com/vokter/vokter/sinks/teams"
	"github.com/vokter/vokter/sinks/telegram"
	"github.com/vokter/vokter/sinks/webhook"
	kafkasource "github.com/vokter/vokter/sources/kafka"
	"github.com/vokter/vokter/stages/fetch/readers/wasm"
)

// Described has the kinds of sinks and their options in JSON, from the comments of the sinks.
//
//go:embed sinks.json
var Described []byte

// Registry returns all plugins. print has what a sink that prints takes from the command line.
func Registry(print stdout.Config) *registry.Registry {
	var r registry.Registry
	stdout.Register(&r, print)
	for _, register := range []func(*registry.Registry){
		// sinks
		discord.Register, email.Register, exec.Register, gotify.Register, inbox.Register, kafka.Register, matrix.Register, mattermost.Register,
		ntfy.Register, route.Register, slack.Register, teams.Register, telegram.Register, webhook.Register,
		// sources
		kafkasource.Register,
		// readers
		wasm.Register,
		// transports
		transport.Register,
	} {
		register(&r)
	}
	return &r
}
