// Command sinkdoc writes docs/sinks: a page for each kind of sink, from the comments of
// its package and of the fields of its Config, and an index. It is run by go generate.
package main

import (
	"fmt"
	"os"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sinkdoc ROOT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "sinkdoc: %v\n", err)
		os.Exit(1)
	}
}

// run writes the pages of the module at root.
func run(root string) error {
	sinks, err := readSinks(root)
	if err != nil {
		return err
	}
	pages, err := write(sinks)
	if err != nil {
		return err
	}
	for path, page := range pages {
		if err := os.WriteFile(root+"/docs/sinks/"+path, []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}
