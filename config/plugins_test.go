package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
)

// withKafka knows the transport over Kafka.
func withKafka(env map[string]string) Options {
	o := fakeOptions(env)
	kafka.Register(o.Registry)
	return o
}

func TestKafka(t *testing.T) {
	text := `
transport:
  kafka:
    brokers: [a.example.com:9092, "[::1]:9093"]
    topic_prefix: shop.
    partitions: 64
    replication: 3
    create_topics: false
    group: shop
    instance_id: "${POD}"
    session_timeout: 30s
    tls: {enable: true, server_name: kafka, insecure: true}
    sasl: {mechanism: SCRAM-SHA-512, user: vokter, password_file: testdata/secret.txt}
`
	c, err := Parse("c.yaml", []byte(text), withKafka(map[string]string{"POD": "pod-3"}))
	if err != nil {
		t.Fatal(err)
	}
	want := &kafka.Config{
		Brokers: []string{"a.example.com:9092", "[::1]:9093"}, Prefix: "shop.", Lanes: 64, Replication: 3, CreateTopics: new(false),
		Group: "shop", InstanceID: "pod-3", SessionTimeout: 30 * time.Second,
		TLS:  cluster.TLS{Enable: true, ServerName: "kafka", Insecure: true},
		SASL: cluster.SASL{Mechanism: "SCRAM-SHA-512", User: "vokter", Password: registry.NewSecret("from a file")},
	}
	if !reflect.DeepEqual(c.Transport, want) {
		t.Errorf("got %+v, want %+v", c.Transport, want)
	}
	if s := fmt.Sprintf("%v %+v %#v", c.Transport, c.Transport, c.Transport); strings.Contains(s, "from a file") {
		t.Errorf("the password is shown: %s", s)
	}
}

func TestKafkaDefaults(t *testing.T) {
	c, err := Parse("c.yaml", []byte(`transport: {kafka: {brokers: ["a:9092"]}}`), withKafka(nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := (&kafka.Config{Brokers: []string{"a:9092"}}); !reflect.DeepEqual(c.Transport, want) {
		t.Errorf("got %+v, want %+v", c.Transport, want)
	}
	for _, local := range []string{"", "transport: local", "transport: {local: {}}"} {
		if c, err := Parse("c.yaml", []byte(local), withKafka(nil)); err != nil || c.Transport != nil {
			t.Errorf("%q: got %+v, %v", local, c, err)
		}
	}
}

// TestKafkaMistakes checks that an error of the Kafka transport names the line and column of the
// option that is wrong.
func TestKafkaMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"transport: kafka":                                       "c.yaml:1:12: transport.kafka.brokers: at least one broker is required, such as kafka-1:9092",
		"transport: {kafka: {brokers: [a]}}":                     "c.yaml:1:31: transport.kafka.brokers[0]: ",
		"transport: {kafka: {brokers: ['a:1'], partitions: -1}}": "c.yaml:1:51: transport.kafka.partitions: -1 is not between 1 and 10000",
		"transport: {kafka: {brokers: ['a:1'], tls: {enable: true, ca: " + filepath.Join("testdata", "none.pem") + "}}}": "transport.kafka.tls.ca: ",
	} {
		if _, err := Parse("c.yaml", []byte(text), withKafka(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// templated is the configuration of a sink for people.
type templated struct {
	Template registry.Template `yaml:"template"`
}

// parseTemplate reads a file with one sink, whose options are options, and returns them.
func parseTemplate(options string) (templated, error) {
	var got templated
	var r registry.Registry
	r.Sinks.Add("people", func(decode registry.Decode, _ registry.Env) (pipeline.Sink, error) {
		return pipeline.SinkFunc(nil), decode(&got)
	})
	_, err := Parse("c.yaml", []byte("sinks:\n  a:\n    people:\n      "+options), Options{Registry: &r})
	return got, err
}

func TestTemplates(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	n := pipeline.Notification{URL: "https://example.com/", Title: "Terms"}
	for _, tt := range []struct{ options, text, mistake string }{
		{"template: '{{.title}}'", "Terms", ""},
		{"template: |\n        {{.title}}\n        {{.url}}", "Terms\nhttps://example.com/", ""},
		{"template_file: " + file("good", "{{.title}} ${HOME}\n"), "Terms ${HOME}", ""},
		{"template: '{{.title'", "", "c.yaml:4:17: sinks.a.people.template: line 1: unclosed action"},
		{"template: '{{.titel}}'", "", `c.yaml:4:17: sinks.a.people.template: fails for an ordinary notification: line 1: there is no field "titel"`},
		{"template: '{{range 9}}{{end}}'", "", "c.yaml:4:17: sinks.a.people.template: line 1: range goes over a field"},
		{"template_file: " + file("bad", "\n{{env}}"), "", `c.yaml:4:22: sinks.a.people.template_file: line 2: there is no function "env"`},
		{"template_file: " + filepath.Join(dir, "none"), "", "does not exist"},
		{"template: 'a'\n      template_file: " + file("both", "x"), "", "both sinks.a.people.template and sinks.a.people.template_file are set"},
		{"template: ''", "", "template is empty"},
		{"template: 7", "", "must be a string"},
		{"templat: x", "", `did you mean "template"`},
	} {
		got, err := parseTemplate(tt.options)
		switch {
		case tt.mistake != "":
			if err == nil || !strings.Contains(err.Error(), tt.mistake) {
				t.Errorf("%s: got %v, want %q", tt.options, err, tt.mistake)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.options, err)
		default:
			compiled, err := render.CompileTemplate("template", got.Template)
			if text, ok := compiled.Render(t.Context(), n); !ok || text != tt.text {
				t.Errorf("%s: got %q, %v, want %q", tt.options, text, err, tt.text)
			}
		}
	}
}
