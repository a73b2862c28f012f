package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every key of the file is explained in docs/configuration.md.
func TestEveryKeyIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() == "net/netip" {
			return
		}
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
			if key == "" {
				continue
			}
			named := false
			for name, more := path+key, true; more && !named; _, name, more = strings.Cut(name, ".") {
				for _, end := range []string{"`", ".", ": "} {
					named = named || strings.Contains(string(doc), "`"+name+end)
				}
			}
			if !named {
				t.Errorf("%s%s is not in docs/configuration.md", path, key)
			}
			walk(typ.Field(i).Type, path+key+".")
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[file]()) {
		walk(reflect.StructOf([]reflect.StructField{{Name: "X", Type: f.Type, Tag: f.Tag}}), "")
	}
}
