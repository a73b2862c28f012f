//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/IBM/sarama"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vokter/vokter/docs/schemas"
)

// table is what a consumer makes of the topic pages, from its beginning: the current text of each document.
type table struct {
	schema  *jsonschema.Schema
	records int
	rows    map[string]tableRow // by document
}

type tableRow struct {
	Document string `json:"document"`
	Page     string `json:"page"`
	Version  int    `json:"version"`
	Text     string `json:"text"`
}

// currentSchema is the schema of the records of the topic pages, behind what the $id of each begins with.
const (
	schemaID      = "https://github.com/vokter/vokter/blob/main/docs/schemas/"
	currentSchema = "vokter.current.v1.json"
)

func newTable() *table {
	b, err := schemas.Files.ReadFile(currentSchema)
	if err != nil {
		panic(err) // it is embedded
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(schemaID+currentSchema, doc); err != nil {
		panic(err)
	}
	return &table{schema: c.MustCompile(schemaID + currentSchema), rows: make(map[string]tableRow)}
}

// addCurrent adds a record of the topic pages to the table, and checks it by its schema.
func (s *topicState) addCurrent(m *sarama.ConsumerMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if header(m, endHeader) != "" {
		s.endedPartitions++
		return
	}
	s.table.records++
	bad := func(err error) {
		s.wrong = append(s.wrong, fmt.Sprintf("pages %d/%d, %s: %v", m.Partition, m.Offset, m.Key, err))
	}
	if m.Value == nil {
		if _, ok := s.table.rows[string(m.Key)]; !ok {
			bad(fmt.Errorf("a tombstone for a document that has no text"))
		}
		delete(s.table.rows, string(m.Key))
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Value))
	if err == nil {
		err = s.table.schema.Validate(v)
	}
	var row tableRow
	if err == nil {
		err = json.Unmarshal(m.Value, &row)
	}
	if err == nil && (row.Document != string(m.Key) || header(m, "ce_dataschema") != schemaID+currentSchema) {
		err = fmt.Errorf("it is of document %s and has the schema %q", row.Document, header(m, "ce_dataschema"))
	}
	if err != nil {
		bad(err)
		return
	}
	s.table.rows[row.Document] = row
}

// judgeTable adds to v where the table does not have exactly the current texts of the pages that are watched.
func (s *topicState) judgeTable(v *verdict, watched []bool, pages []pageHistory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make(map[int]tableRow)
	for _, row := range s.table.rows {
		page := pagePattern.FindStringSubmatch(row.Page)
		if page == nil {
			v.addWrong("pages: a text of %s", row.Page)
			continue
		}
		n, _ := strconv.Atoi(page[1])
		if _, ok := rows[n]; ok {
			v.addWrong("pages: page %d has two texts", n)
		}
		rows[n] = row
	}
	for n, h := range pages {
		row, ok := rows[n]
		switch {
		case ok && !watched[n]:
			v.addWrong("pages: page %d ended and has a text, of version %d", n, row.Version)
		case !ok && watched[n]:
			v.addLost("pages: page %d has no text", n)
		case ok && row.Text != pageText(n, h.last):
			v.addWrong("pages: page %d has the text %q, want %q", n, row.Text, pageText(n, h.last))
		}
	}
}
