package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// tokenTimeout is how long a command may take for a token. tokenReuse is for how long its token serves other
// connections too: a process opens many at once, and each of them logs in.
const (
	tokenTimeout = 30 * time.Second
	tokenReuse   = time.Minute
)

// providers has the tokens by what the SASL says of them: each producer of a lane has a configuration of its own.
var providers sync.Map

// tokensOf returns the tokens that s names.
func tokensOf(s SASL) *tokens {
	t, _ := providers.LoadOrStore(fmt.Sprintf("%q %q %q", s.TokenFile, s.TokenCommand, s.Extensions),
		&tokens{file: s.TokenFile, command: s.TokenCommand, extensions: s.Extensions})
	return t.(*tokens)
}

// tokens provides the tokens of OAUTHBEARER that a SASL names.
type tokens struct {
	file       string
	command    []string
	extensions map[string]string

	mu     sync.Mutex
	last   string
	lastAt time.Time
}

var _ sarama.AccessTokenProvider = (*tokens)(nil)

// Token implements sarama.AccessTokenProvider. Sarama calls it for each connection, and again before the brokers'
// time for a login is over.
func (t *tokens) Token() (*sarama.AccessToken, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.file != "":
		b, err := os.ReadFile(t.file)
		if err != nil {
			return nil, fmt.Errorf("sasl.token_file: %w", err)
		}
		t.last = strings.TrimSpace(string(b))
	case t.last == "" || time.Since(t.lastAt) > tokenReuse:
		token, err := t.run()
		if err != nil {
			return nil, err
		}
		t.last, t.lastAt = token, time.Now()
	}
	if t.last == "" || strings.ContainsAny(t.last, "\x00\x01 \r\n") {
		t.last = ""
		return nil, fmt.Errorf("%s: it must have one token and nothing else", t.field())
	}
	return &sarama.AccessToken{Token: t.last, Extensions: t.extensions}, nil
}

func (t *tokens) field() string {
	if t.file != "" {
		return "sasl.token_file"
	}
	return "sasl.token_command"
}

// run returns what the command prints.
func (t *tokens) run() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	var out, stderr bytes.Buffer
	c := exec.CommandContext(ctx, t.command[0], t.command[1:]...)
	c.Stdout, c.Stderr, c.WaitDelay = &out, &stderr, time.Second
	err := c.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s: %s took more than %v", t.field(), t.command[0], tokenTimeout)
	}
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("%s: %s: %w %s", t.field(), t.command[0], err, first)
	}
	return strings.TrimSpace(out.String()), nil
}
