package openapi

import (
	"strconv"
	"strings"

	"mcpbridge/internal/raw"
)

// A shape is what the value of a keyword must be.
type shape uint8

const (
	anyShape      shape = iota // also of what is no keyword
	oneSchema                  // one schema
	schemaList                 // a list of schemas, not empty
	schemaMap                  // schemas by name
	itemsShape                 // one schema, or up to 2019-09 a list of them
	depsShape                  // by name, a schema or a list of names
	textShape                  // a string
	numberShape                // a number
	positiveShape              // a number over zero
	boundShape                 // a number; a boolean in draft 4
	countShape                 // an integer, not negative
	flagShape                  // a boolean
	namesShape                 // a list of strings
	namesMap                   // lists of strings by name
	typesShape                 // one of the seven types, or a list of them
	listShape                  // a list
	valuesShape                // a list, not empty
	recordShape                // an object
	structure                  // handled where schemas are embedded, never copied
)

// A keyword is what is known of a member of a schema.
type keyword struct {
	shape   shape
	since   int  // the first draft that knows it
	until   int  // the last draft that does, if it went away
	asserts bool // it refuses values; all others only tell something
	inPlace bool // its schemas apply to the same value, not to a part of it
}

// keywords are all that JSON Schema from draft 4 to 2020-12 and OpenAPI define.
// What is not here means nothing to a validator and is copied as it is.
var keywords = map[string]keyword{
	"$schema":          {shape: structure},
	"$id":              {shape: structure},
	"$anchor":          {shape: structure, since: 2019},
	"$dynamicAnchor":   {shape: structure, since: 2020},
	"$recursiveAnchor": {shape: structure, since: 2019},
	"$vocabulary":      {shape: structure, since: 2019},
	"$defs":            {shape: structure},
	"definitions":      {shape: structure},
	"$ref":             {shape: structure},
	"$dynamicRef":      {shape: structure, since: 2020},
	"$recursiveRef":    {shape: structure, since: 2019, until: 2019},
	// A discriminator names schemas by references that do not survive; it asserts nothing.
	"discriminator": {shape: structure},
	"nullable":      {shape: structure},

	"type":  {shape: typesShape, asserts: true},
	"enum":  {shape: valuesShape, asserts: true},
	"const": {since: 6, asserts: true},

	"allOf": {shape: schemaList, asserts: true, inPlace: true},
	"anyOf": {shape: schemaList, asserts: true, inPlace: true},
	"oneOf": {shape: schemaList, asserts: true, inPlace: true},
	"not":   {shape: oneSchema, asserts: true, inPlace: true},
	"if":    {shape: oneSchema, since: 7, asserts: true, inPlace: true},
	"then":  {shape: oneSchema, since: 7, asserts: true, inPlace: true},
	"else":  {shape: oneSchema, since: 7, asserts: true, inPlace: true},

	"properties":            {shape: schemaMap, asserts: true},
	"patternProperties":     {shape: schemaMap, asserts: true},
	"additionalProperties":  {shape: oneSchema, asserts: true},
	"propertyNames":         {shape: oneSchema, since: 6, asserts: true},
	"unevaluatedProperties": {shape: oneSchema, since: 2019, asserts: true},
	"required":              {shape: namesShape, asserts: true},
	"minProperties":         {shape: countShape, asserts: true},
	"maxProperties":         {shape: countShape, asserts: true},
	"dependencies":          {shape: depsShape, asserts: true, inPlace: true},
	"dependentRequired":     {shape: namesMap, since: 2019, asserts: true},
	"dependentSchemas":      {shape: schemaMap, since: 2019, asserts: true, inPlace: true},

	"items":            {shape: itemsShape, asserts: true},
	"prefixItems":      {shape: schemaList, since: 2020, asserts: true},
	"additionalItems":  {shape: oneSchema, until: 2019, asserts: true},
	"unevaluatedItems": {shape: oneSchema, since: 2019, asserts: true},
	"contains":         {shape: oneSchema, since: 6, asserts: true},
	"minContains":      {shape: countShape, since: 2019, asserts: true},
	"maxContains":      {shape: countShape, since: 2019, asserts: true},
	"minItems":         {shape: countShape, asserts: true},
	"maxItems":         {shape: countShape, asserts: true},
	"uniqueItems":      {shape: flagShape, asserts: true},

	"minLength": {shape: countShape, asserts: true},
	"maxLength": {shape: countShape, asserts: true},
	"pattern":   {shape: textShape, asserts: true},

	"minimum":          {shape: numberShape, asserts: true},
	"maximum":          {shape: numberShape, asserts: true},
	"exclusiveMinimum": {shape: boundShape, asserts: true},
	"exclusiveMaximum": {shape: boundShape, asserts: true},
	"multipleOf":       {shape: positiveShape, asserts: true},

	"title":            {shape: textShape},
	"description":      {shape: textShape},
	"$comment":         {shape: textShape},
	"format":           {shape: textShape},
	"contentEncoding":  {shape: textShape},
	"contentMediaType": {shape: textShape},
	"contentSchema":    {shape: oneSchema, since: 2019},
	"deprecated":       {shape: flagShape},
	"readOnly":         {shape: flagShape},
	"writeOnly":        {shape: flagShape},
	"examples":         {shape: listShape},
	"xml":              {shape: recordShape},
	"externalDocs":     {shape: recordShape},
}

// knows reports whether a draft gives the keyword a meaning.
func (k keyword) knows(draft int) bool {
	return draft >= k.since && (k.until == 0 || draft <= k.until)
}

// fits reports whether v can be the value of a keyword of that shape. Schemas in
// it are not looked into.
func (s shape) fits(v *node) bool {
	switch s {
	case oneSchema:
		return v.is(raw.Object, raw.Bool)
	case schemaList, valuesShape:
		return v.is(raw.Array) && len(v.elems) > 0
	case listShape:
		return v.is(raw.Array)
	case schemaMap, namesMap, recordShape, depsShape:
		return v.is(raw.Object)
	case itemsShape:
		return v.is(raw.Object, raw.Bool, raw.Array)
	case textShape:
		return v.is(raw.String)
	case numberShape:
		return v.is(raw.Number)
	case positiveShape:
		f, err := strconv.ParseFloat(string(v.raw), 64)
		return v.is(raw.Number) && err == nil && f > 0
	case boundShape:
		return v.is(raw.Number, raw.Bool)
	case countShape:
		f, err := strconv.ParseFloat(string(v.raw), 64)
		return v.is(raw.Number) && err == nil && f >= 0 && f == float64(int64(f))
	case flagShape:
		return v.is(raw.Bool)
	case namesShape:
		return v.is(raw.Array)
	case typesShape:
		return v.is(raw.String, raw.Array)
	default:
		return true
	}
}

// isType reports whether n names one of the types of JSON Schema.
func isType(n *node) bool {
	switch n.text() {
	case "null", "boolean", "object", "array", "number", "string", "integer":
		return true
	default:
		return false
	}
}

// draftOf returns the draft that a $schema names, or 0.
func draftOf(uri string) int {
	uri = strings.TrimSuffix(strings.TrimSuffix(uri, "#"), "/schema")
	_, uri, _ = strings.Cut(uri, "://")
	switch uri {
	case "json-schema.org", "json-schema.org/draft/2020-12":
		return 2020
	case "json-schema.org/draft/2019-09":
		return 2019
	case "json-schema.org/draft-07":
		return 7
	case "json-schema.org/draft-06":
		return 6
	case "json-schema.org/draft-04":
		return 4
	default:
		return 0
	}
}
