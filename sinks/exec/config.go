package exec

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for an exec.
type Config struct {
	// Command is the program and its arguments, such as [/usr/local/bin/notify, --urgent]. The
	// program is an absolute path, or a name that is looked up in PATH when the configuration
	// is read. It is not a line for a shell; for that write [/bin/sh, -c, "..."]. Required.
	Command []string `yaml:"command"`
	// Env are the variables of the command's environment, such as {API_KEY: "${API_KEY}"},
	// besides HOME, LANG, PATH, TMPDIR and TZ, which it has from this process. It has no
	// others. Default: none.
	Env map[string]registry.Secret `yaml:"env"`
}

// inherited are the variables that a command has from this process.
var inherited = []string{"HOME", "LANG", "PATH", "TMPDIR", "TZ"}

// names is what the name of a variable looks like.
var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong. It
// looks for the program, and runs nothing.
func New(c Config) (*Exec, error) {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	path, err := c.program()
	if err != nil {
		wrong("command", "%v", err)
	}
	for i, arg := range c.Command {
		if strings.ContainsRune(arg, 0) {
			wrong(fmt.Sprintf("command[%d]", i), "an argument has no NUL")
		}
	}
	e := &Exec{path: path, args: c.Command}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			e.env = append(e.env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[name].Reveal()
		if !names.MatchString(name) {
			wrong("env", "%q cannot be the name of a variable", name)
		}
		if strings.ContainsRune(value, 0) {
			wrong("env", "the value of %s has a NUL", name)
		}
		e.env = append(e.env, name+"="+value) // of two with one name the last counts
		e.secrets.Add(value)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return e, nil
}

// program returns the path of the program.
func (c Config) program() (string, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return "", errors.New("a program is needed, such as [/usr/local/bin/notify]")
	}
	name := c.Command[0]
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		return "", fmt.Errorf("write the absolute path of %q: it must not depend on where this process is started", name)
	}
	path, err := exec.LookPath(name)
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return "", fmt.Errorf("%q: %w", e.Name, e.Err)
	}
	return path, err
}

// Register makes the configuration know the kind of sink "exec".
func Register(r *registry.Registry) {
	registry.AddSink(r, "exec", func(c Config, _ registry.Env) (*Exec, error) { return New(c) })
}
