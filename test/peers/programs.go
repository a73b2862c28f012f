package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// program is a program that watches pages.
type program struct {
	name string
	// first configures it in dir for the pages, and returns the command that reads each once.
	first func(dir string, urls []string) (command, error)
	// again returns the commands that check each page so many times.
	again func(dir string, passes int) []command
}

// command is a command line, and what is added to its environment.
type command struct {
	args, env []string
}

// programs returns those that are to be compared.
func (o options) programs() []program {
	ps := []program{vokter(o.vokter)}
	if o.urlwatch != "" {
		ps = append(ps, urlwatch(o.urlwatch))
	}
	if o.changedetection != "" {
		ps = append(ps, changedetection(o.changedetection))
	}
	return ps
}

// vokter is one process that makes all passes, one after the other.
func vokter(binary string) program {
	args := func(dir string, checks int) command {
		return command{args: []string{
			binary, "run", "-c", filepath.Join(dir, "vokter.yaml"), "--data", filepath.Join(dir, "data"), "--checks", fmt.Sprint(checks), "--every", "0s",
		}}
	}
	return program{
		name: "vokter-stream",
		first: func(dir string, urls []string) (command, error) {
			var s strings.Builder
			s.WriteString("allow: {fetch: [127.0.0.1/32]}\nfetch: {per_host: {concurrency: 8, rate: 100000/s}}\nsinks: {out: {stdout: {}}}\nsubscriptions:\n")
			for _, u := range urls {
				fmt.Fprintf(&s, "  - {url: %q, sinks: [out]}\n", u)
			}
			return args(dir, 1), os.WriteFile(filepath.Join(dir, "vokter.yaml"), []byte(s.String()), 0o600)
		},
		again: func(dir string, passes int) []command { return []command{args(dir, passes)} },
	}
}

// urlwatch is a process for each pass, as it is meant to be run.
func urlwatch(binary string) program {
	args := func(dir string) command {
		return command{args: []string{
			binary, "--urls", filepath.Join(dir, "urls.yaml"), "--config", filepath.Join(dir, "config.yaml"),
			"--hooks", filepath.Join(dir, "hooks.py"), "--cache", filepath.Join(dir, "cache.db"),
		}}
	}
	return program{
		name: "urlwatch",
		first: func(dir string, urls []string) (command, error) {
			var s strings.Builder
			for n, u := range urls {
				if n > 0 {
					s.WriteString("---\n")
				}
				fmt.Fprintf(&s, "url: %q\n", u)
			}
			config := "display: {new: false, error: true, unchanged: false}\nreport: {stdout: {enabled: true}}\n"
			if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600); err != nil {
				return command{}, err
			}
			return args(dir), os.WriteFile(filepath.Join(dir, "urls.yaml"), []byte(s.String()), 0o600)
		},
		again: func(dir string, passes int) (cs []command) {
			for range passes {
				cs = append(cs, args(dir))
			}
			return cs
		},
	}
}

// changedetection is one process that makes all passes in its batch mode. It may fetch from loopback
// only if the environment allows it.
func changedetection(binary string) program {
	args := func(dir string, more ...string) command {
		all := append([]string{binary, "-d", filepath.Join(dir, "data"), "-p", "0", "-l", "CRITICAL", "-b", "-r", "all"}, more...)
		return command{args: all, env: []string{"ALLOW_IANA_RESTRICTED_ADDRESSES=true"}}
	}
	return program{
		name: "changedetection.io",
		first: func(dir string, urls []string) (command, error) {
			more := []string{"-C"}
			for _, u := range urls {
				more = append(more, "-u", u)
			}
			return args(dir, more...), nil
		},
		again: func(dir string, passes int) []command { return []command{args(dir, fmt.Sprint(passes))} },
	}
}
