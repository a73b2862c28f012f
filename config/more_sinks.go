package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// ReceiversFile is the file of a data directory with the sinks that were made on the web page. Its only key is sinks.
const ReceiversFile = "receivers.yaml"

// Inbox is the kind of the sink that sends nothing, and the name of the one that each process with a listener has.
const Inbox = "inbox"

// sinksOnly is the shape of a file that has sinks and nothing else.
type sinksOnly struct {
	Sinks map[string]sinkEntry `yaml:"sinks"`
}

// addMoreSinks adds to f the sinks that stand elsewhere: those in the data directory, and the inbox, which each
// process with a listener has. A name in f comes first. It returns the decoders of what it read.
func (d *decoder) addMoreSinks(f *yamlFile, o Options) []*decoder {
	var more []*decoder
	stored := filepath.Join(f.Data, ReceiversFile)
	add := func(file string, data []byte) {
		from := newDecoder(file, o.LookupEnv)
		from.onFile = o.Named
		more = append(more, from)
		var found sinksOnly
		if body := from.parseYAML(data); body != nil {
			from.decodeValue(body, reflect.ValueOf(&found).Elem(), "")
		}
		if f.Sinks == nil {
			f.Sinks = make(map[string]sinkEntry)
		}
		for _, name := range slices.Sorted(maps.Keys(found.Sinks)) {
			if _, taken := f.Sinks[name]; !taken {
				f.Sinks[name] = found.Sinks[name]
			} else if file == stored {
				d.warnAt(d.positionOfPath("sinks."+name), "sinks.%s: a receiver that was made on the web page has this name as well and is not used; rename one of them", name)
			}
		}
	}
	if f.Data != "" {
		o.Named(stored)
		data, err := o.Receivers, error(nil)
		if data == nil {
			if data, err = os.ReadFile(stored); errors.Is(err, fs.ErrNotExist) {
				data, err = nil, nil
			}
		}
		switch {
		case errors.Is(err, fs.ErrPermission): // somebody checks the file of a process of another user
			d.warnAt(d.positionOfPath("data"), "data: %s cannot be read by this user, so that receivers which were made on the web page are not known here", stored)
		case err != nil:
			d.report(&Error{File: stored, Message: err.Error()})
		case data != nil:
			add(stored, data)
		}
	}
	if _, known := o.Registry.Sinks.Lookup(Inbox); known && f.Listen != "" {
		add("the web page", []byte("sinks: {"+Inbox+": {"+Inbox+": {}}}"))
	}
	return more
}
