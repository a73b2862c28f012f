// Command vokter-stream watches web pages for keywords and sends notifications.
// Its verbs are listed by vokter-stream --help.
package main

import (
	"os"
	_ "time/tzdata" // for containers that have no time zones

	"github.com/vokter/vokter/internal/cli"
)

func main() { os.Exit(cli.Main(nil)) }
