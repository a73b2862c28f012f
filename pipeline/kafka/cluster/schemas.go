package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/vokter/vokter/docs/schemas"
	"github.com/vokter/vokter/pipeline/registry"
)

// SchemaRegistry is a Schema Registry with Confluent's REST API. The JSON Schema of each type of record is registered
// under the type as its subject, and records have its ID in front of their JSON.
type SchemaRegistry struct {
	// URL is the address of the registry, such as https://registry.example.com. Empty: there is none.
	URL string `yaml:"url"`
	// User is the name to log in with. Empty: no login.
	User string `yaml:"user"`
	// Password is the secret to log in with.
	Password registry.Secret `yaml:"password"`
}

// validate reports the mistakes in s to bad.
func (s SchemaRegistry) validate(bad func(field, format string, args ...any)) {
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "" && s != (SchemaRegistry{}):
		bad("schema_registry.url", "is missing; write one such as https://registry.example.com")
	case s.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil):
		bad("schema_registry.url", "is not the address of a registry; write one such as https://registry.example.com, and user and password beside it")
	case (s.User == "") != s.Password.IsZero():
		bad("schema_registry.user", "a user needs a password, and a password a user")
	}
}

// SchemaIDs are the IDs of the schemas of a registry, by the types of the records.
type SchemaIDs map[string]int

// registryTimeout is how long the registration of one schema may take.
const registryTimeout = 10 * time.Second

// RegisterSchemas registers the schemas of types, if c has a registry, and returns their IDs. A schema that is
// registered keeps its ID. Errors say what to do; those that do not pass by themselves are an ErrRegistry.
func (c Config) RegisterSchemas(ctx context.Context, types []string) (SchemaIDs, error) {
	if c.SchemaRegistry.URL == "" {
		return nil, nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.TLS.Enable {
		conf, err := c.TLS.config()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
		}
		conf.ServerName = "" // that of the brokers
		transport.TLSClientConfig = conf
	}
	defer transport.CloseIdleConnections()
	opts := []sr.ClientOpt{sr.URLs(c.SchemaRegistry.URL), sr.UserAgent(ClientID), sr.HTTPClient(&http.Client{Transport: transport, Timeout: registryTimeout})}
	if c.SchemaRegistry.User != "" {
		opts = append(opts, sr.BasicAuth(c.SchemaRegistry.User, c.SchemaRegistry.Password.Reveal()))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	r := registrar{client, make(map[string]sr.SubjectSchema)}
	ids := make(SchemaIDs, len(types))
	for _, typ := range types {
		s, err := r.register(ctx, typ+".json")
		if err != nil {
			return nil, err
		}
		ids[typ] = s.ID
	}
	return ids, nil
}

// registrar registers schemas, each once.
type registrar struct {
	client *sr.Client
	done   map[string]sr.SubjectSchema // by file
}

// references are the other files in a schema.
var references = regexp.MustCompile(`"\$ref": *"([a-z.0-9]+\.json)"`)

// register registers a file of docs/schemas, behind those that it refers to.
func (r registrar) register(ctx context.Context, file string) (sr.SubjectSchema, error) {
	if s, ok := r.done[file]; ok {
		return s, nil
	}
	b, err := schemas.Files.ReadFile(file)
	if err != nil {
		return sr.SubjectSchema{}, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	s := sr.Schema{Schema: string(b), Type: sr.TypeJSON}
	for _, m := range references.FindAllStringSubmatch(s.Schema, -1) {
		name := m[1]
		if slices.ContainsFunc(s.References, func(ref sr.SchemaReference) bool { return ref.Name == name }) {
			continue
		}
		part, err := r.register(ctx, name)
		if err != nil {
			return part, err
		}
		s.References = append(s.References, sr.SchemaReference{Name: name, Subject: part.Subject, Version: part.Version})
	}
	made, err := r.client.CreateSchema(ctx, subject(file), s)
	if err != nil {
		return made, registryError(subject(file), err)
	}
	r.done[file] = made
	return made, nil
}

// subject returns the subject of a file: the type of the records, or a name of the same kind for a part of others.
func subject(file string) string {
	name := strings.TrimSuffix(file, path.Ext(file))
	if strings.HasPrefix(name, "vokter.") {
		return name
	}
	return "vokter." + name
}

// ErrRegistry is in errors of RegisterSchemas that do not pass by themselves.
var ErrRegistry = errors.New("schema registry")

// registryError explains err, which came of the registration of a subject.
func registryError(subject string, err error) error {
	refused, ok := errors.AsType[*sr.ResponseError](err)
	switch {
	case !ok:
		return fmt.Errorf("the schema registry does not answer: %w", err)
	case refused.StatusCode >= http.StatusInternalServerError, refused.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("the schema registry failed with %d: %w", refused.StatusCode, err)
	case refused.StatusCode == http.StatusUnauthorized, refused.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: we may not register %s: check user and password, and allow Write on the subject", ErrRegistry, subject)
	case refused.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w: the compatibility of the subject %s forbids this version of its schema: set it to NONE, "+
			"because new versions add fields, which the rules for JSON Schema may not allow", ErrRegistry, subject)
	}
	return fmt.Errorf("%w: it refused %s with %d: %w", ErrRegistry, subject, refused.StatusCode, err)
}

// frameSize is the size of the frame: a zero, and the ID in four bytes.
const frameSize = 5

// Frame returns the value of a record of a type: its JSON with the ID of its schema in front of it, in Confluent's
// format, if it has one.
func (ids SchemaIDs) Frame(typ string, body []byte) []byte {
	id, ok := ids[typ]
	if !ok || body == nil {
		return body
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 1, frameSize+len(body)), uint32(id))
	return append(b, body...)
}

// Unframe returns the JSON in the value of a record. No JSON begins with a zero, as a frame does.
func Unframe(value []byte) []byte {
	if len(value) >= frameSize && value[0] == 0 {
		return value[frameSize:]
	}
	return value
}
