package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

// props is a schema of arguments with these properties.
func props(properties string, more ...string) string {
	return `{"type":"object","properties":{` + properties + `}` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// check compiles the schema and checks the document. The findings read "pointer: message".
func check(t testing.TB, schema, doc string) (out string, findings []string) {
	t.Helper()
	tl := tool(t, "h", "t", schema)
	if tl.Unchecked != "" {
		t.Fatalf("Unchecked = %q", tl.Unchecked)
	}
	if tl.Arguments == nil {
		return doc, nil
	}
	b, err := tl.Arguments.Check([]byte(doc))
	if err == nil {
		return string(b), nil
	}
	e := err.(*bridge.Error) //nolint:errorlint // the contract names this very type
	if e.Kind != bridge.InvalidArguments {
		t.Errorf("the kind is %s", e.Kind)
	}
	for _, f := range e.Members["errors"].([]finding) {
		findings = append(findings, f.Pointer+": "+f.Message+" @"+f.SchemaPointer)
	}
	return "", findings
}

func TestCheck(t *testing.T) {
	const draft4, draft7 = `"$schema":"http://json-schema.org/draft-04/schema#"`, `"$schema":"http://json-schema.org/draft-07/schema#"`
	tests := []struct {
		name, schema, doc string
		want              []string // nil: passes, unchanged
	}{
		{"fits", props(`"mode":{"enum":["fast","slow"]}`), `{"mode":"fast"}`, nil},
		{"enum", props(`"mode":{"enum":["fast","slow"]}`), `{"mode":"medium"}`, []string{`/mode: must be one of "fast", "slow" @/properties/mode/enum`}},
		{"a reference to a property", props(`"from":{"type":"string"},"to":{"$ref":"#/properties/from"}`), `{"to":1}`, []string{`/to: is a number, must be a string @/properties/from/type`}},
		{"definitions", props(`"z":{"$ref":"#/definitions/Z"}`, draft7, `"definitions":{"Z":{"type":"integer"}}`), `{"z":1.5}`, []string{`/z: is a number, must be an integer @/definitions/Z/type`}},
		{
			"a node in a node", props(`"n":{"$ref":"#/$defs/N"}`, `"$defs":{"N":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/N"}}}}}`),
			`{"n":{"kids":[{},{"kids":[{"kids":7}]}]}}`,
			[]string{`/n/kids/1/kids/0/kids: is a number, must be an array @/$defs/N/properties/kids/type`},
		},
		{"a tuple", props(`"t":{"items":[{"type":"number"},{"type":"string"}]}`), `{"t":["a","b"]}`, []string{`/t/0: is a string, must be a number @/properties/t/items/0/type`}},
		{"a boolean bound", props(`"x":{"minimum":3,"exclusiveMinimum":true}`, draft4), `{"x":3}`, []string{`/x: must be more than 3 @/properties/x/exclusiveMinimum`}},
		{"a boolean bound of no draft", props(`"x":{"minimum":3,"exclusiveMinimum":true}`), `{"x":3}`, []string{`/x: must be more than 3 @/properties/x/exclusiveMinimum`}},
		{"true", props(`"x":true,"y":{"type":"string"}`), `{"x":[1,{"a":null}]}`, nil},
		{"items true", props(`"x":{"type":"array","items":true},"y":{"type":"array","items":{}},"z":{"type":"array"}`), `{"x":[1],"y":["a",null],"z":[[]]}`, nil},
		{"odd names", props(`"__top":{"type":"string"},"_id":{},"$filter":{},"a-b":{},"x.y":{},"@type":{},"ä":{"type":"string"}`), `{"__top":"a","_id":1,"$filter":2,"a-b":3,"x.y":4,"@type":5,"ä":"b"}`, nil},
		{"an odd name in a pointer", props(`"a/b~c":{"type":"string"}`), `{"a/b~c":1}`, []string{`/a~1b~0c: is a number, must be a string @/properties/a~1b~0c/type`}},
		{"additional ones arrive", props(`"a":{"type":"string"}`, `"additionalProperties":true`), `{"a":"x","k":1}`, nil},
		{"additional ones do not", props(`"a":{"type":"string"}`, `"additionalProperties":false`), `{"a":"x","k":1,"l":2}`, []string{
			`: does not allow "k" @/additionalProperties`, `: does not allow "l" @/additionalProperties`,
		}},
		{"required and not declared", `{"type":"object","properties":{},"required":["q"]}`, `{"q":1}`, nil},
		{"required", props(`"a":{},"b":{}`, `"required":["a","b","c"]`), `{"b":1}`, []string{`: misses "a" @/required`, `: misses "c" @/required`}},
		{"defaults are not put in", props(`"a":{"type":"string","default":"x"}`), `{}`, nil},
		{"nothing is coerced", props(`"n":{"type":"integer"},"b":{"type":"boolean"}`), `{"n":"1","b":"true"}`, []string{
			`/b: is a string, must be a boolean @/properties/b/type`, `/n: is a string, must be an integer @/properties/n/type`,
		}},
		{"formats only tell", props(`"u":{"type":"string","format":"uri"}`, draft7), `{"u":"no uri at all"}`, nil},
		{"a format of expressions, too", props(`"u":{"type":"string","format":"regex"}`, draft7), `{"u":"("}`, nil},
		{"siblings of a reference", props(`"s":{"$ref":"#/$defs/S","minLength":3}`, `"$defs":{"S":{"type":"string"}}`), `{"s":"ab"}`, []string{`/s: has 2 characters, at least 3 are needed @/properties/s/minLength`}},
		{"siblings of a reference, up to draft-07", props(`"s":{"$ref":"#/definitions/S","minLength":3,"const":1,"enum":[2]}`, draft7, `"definitions":{"S":{"type":"string"}}`), `{"s":"ab"}`, nil},
		{"nullable", props(`"s":{"type":"string","nullable":true}`, `"required":["s"]`), `{"s":null}`, nil},
		{"a property called nullable", props(`"nullable":{"type":"boolean"},"type":{"type":"string"}`), `{"nullable":true,"type":1}`, []string{`/type: is a number, must be a string @/properties/type/type`}},
		{"exact integers", props(`"n":{"maximum":9007199254740992}`), `{"n":9007199254740993}`, []string{`/n: must be at most 9007199254740992 @/properties/n/maximum`}},
		{"exact fractions", props(`"n":{"multipleOf":0.1}`), `{"n":1.1}`, nil},
		{"ECMAScript patterns", props(`"s":{"pattern":"^(?!x)(?<y>\\d{3})[\\-a]$"}`), `{"s":"x123"}`, []string{`/s: does not match the pattern "^(?!x)(?<y>\\d{3})[\\-a]$" @/properties/s/pattern`}},
		{"ASCII digits", props(`"s":{"pattern":"^\\d$"}`), `{"s":"٣"}`, []string{`/s: does not match the pattern "^\\d$" @/properties/s/pattern`}},
		{"one type or another", props(`"x":{"anyOf":[{"type":"integer"},{"type":"null"},{"$ref":"#/$defs/A"}]}`, `"$defs":{"A":{"type":"array"}}`), `{"x":"a"}`, []string{
			`/x: is a string, must be an integer or null or an array @/properties/x/anyOf`,
		}},
		{"the alternative of the right type", props(`"x":{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}]}`), `{"x":{"a":1}}`, []string{
			`/x: misses "b" @/properties/x/anyOf/1/required`, `/x/a: is a number, must be a string @/properties/x/anyOf/1/properties/a/type`,
		}},
		{"no alternative", props(`"x":{"oneOf":[{"required":["a"]},{"required":["b"]},{"type":"string"}]}`), `{"x":{}}`, []string{
			`/x: fits none of the 3 alternatives of oneOf @/properties/x/oneOf`, `/x: misses "a" @/properties/x/oneOf/0/required`, `/x: misses "b" @/properties/x/oneOf/1/required`,
		}},
		{"two alternatives", props(`"x":{"oneOf":[{"type":"number"},{"type":"integer"}]}`), `{"x":1}`, []string{`/x: fits more than one alternative of oneOf: 0 and 1 @/properties/x/oneOf`}},
		{"names in two places", props(``, `"additionalProperties":{"propertyNames":{"pattern":"^.$","maxLength":1}}`), `{"a":{"aa":1},"b":{"aa":1}}`, []string{
			`: does not allow the name "aa" @/additionalProperties/propertyNames`,
		}},
		{"names in a list", props(`"a":{"items":{"propertyNames":{"enum":["x"]}}}`), `{"a":[{"x":1},{"y":1}]}`, []string{
			`/a/1: does not allow the name "y": it must be "x" @/properties/a/items/propertyNames`,
		}},
		{
			"every other rule",
			props(`"c":{"const":1},"d":{"not":{"type":"string"}},"e":false,"f":{"minProperties":2},"g":{"maxProperties":0},"h":{"minItems":2},"i":{"maxItems":0},` +
				`"j":{"prefixItems":[{}],"items":false},"k":{"dependentRequired":{"a":["b"]}},"l":{"propertyNames":{"maxLength":1}},"m":{"uniqueItems":true},"n":{"contains":{"type":"null"}},` +
				`"o":{"contains":{},"minContains":2},"p":{"contains":{},"maxContains":0,"minContains":0},"q":{"maxLength":1},"r":{"minimum":1},"s":{"exclusiveMaximum":1.50},"t":{"multipleOf":2},"u":{"dependencies":{"a":["b"]}}`),
			`{"c":2,"d":"x","e":1,"f":{},"g":{"a":1},"h":[],"i":[1],"j":[1,2],"k":{"a":1},"l":{"aa":1},"m":[1,1.0],"n":[1],"o":[1],"p":[1],"q":"ab","r":0,"s":1.5,"t":3,"u":{"a":1}}`,
			[]string{
				`/c: must be 1 @/properties/c/const`, `/d: is what must not be @/properties/d`, `/e: is not allowed @/properties/e`,
				`/f: has 0 properties, at least 2 are needed @/properties/f/minProperties`, `/g: has 1 properties, at most 0 are allowed @/properties/g/maxProperties`,
				`/h: has 0 items, at least 2 are needed @/properties/h/minItems`, `/i: has 1 items, at most 0 are allowed @/properties/i/maxItems`,
				`/j/1: is not allowed @/properties/j/items`, `/k: misses "b", which "a" needs @/properties/k/dependentRequired/a`,
				`/l: does not allow the name "aa": it has 2 characters, at most 1 are allowed @/properties/l/propertyNames`, `/m: has equal items, at 0 and 1 @/properties/m/uniqueItems`,
				`/n: has no item that fits contains @/properties/n/contains`, `/o: has 1 items that fit contains, at least 2 are needed @/properties/o/minContains`,
				`/p: has 1 items that fit contains, at most 0 are allowed @/properties/p/maxContains`, `/q: has 2 characters, at most 1 are allowed @/properties/q/maxLength`,
				`/r: must be at least 1 @/properties/r/minimum`, `/s: must be less than 1.5 @/properties/s/exclusiveMaximum`,
				`/t: must be a multiple of 2 @/properties/t/multipleOf`, `/u: misses "b", which "a" needs @/properties/u/dependencies/a`,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, findings := check(t, test.schema, test.doc)
			if diff := cmp.Diff(test.want, findings); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if test.want == nil && out != test.doc {
				t.Errorf("the document became %s", out)
			}
		})
	}
}

// An open schema needs no check at all.
func TestNothingToCheck(t *testing.T) {
	for _, schema := range []string{
		``, `{"type":"object"}`, `{"type":"object","additionalProperties":true}`, `{"type":"object","additionalProperties":{}}`,
		props(`"a":true,"b":{"description":"x","default":1},"c":{}`, `"required":[]`, `"$schema":"https://json-schema.org/draft/2020-12/schema"`),
	} {
		if tl := tool(t, "h", "t", schema); tl.Arguments != nil {
			t.Errorf("%s has a checker", schema)
		}
	}
	for _, schema := range []string{
		`{"type":["object","null"]}`, props(`"a":false`), props(`"a":{"type":"string"}`), props(``, `"additionalProperties":false`),
		props(`"a":{}`, `"required":["a"]`), props(`"a":{"$ref":"#/$defs/A"}`, `"$defs":{"A":{"type":"string"}}`), props(``, `"minProperties":1`),
	} {
		if tl := tool(t, "h", "t", schema); tl.Arguments == nil {
			t.Errorf("%s has no checker", schema)
		}
	}
}

func TestNullsThatAreCut(t *testing.T) {
	const filter = `"$defs":{"F":{"type":"object","properties":{"limit":{"type":"integer"},"sub":{"$ref":"#/$defs/F"}},"required":["must"]}}`
	tests := []struct{ name, schema, doc, want string }{
		{"the only member", props(`"limit":{"type":"integer"}`), `{"limit":null}`, `{}`},
		{"the first", props(`"limit":{"type":"integer"}`), `{ "limit" : null , "q": "x" }`, `{ "q": "x" }`},
		{"the last", props(`"limit":{"type":"integer"}`), `{ "q": "x" , "limit":null }`, `{ "q": "x" }`},
		{"one between", props(`"limit":{"type":"integer"}`), `{"a":1.0,"limit":null,  "b":[ null ]}`, `{"a":1.0,  "b":[ null ]}`},
		{"several", props(`"a":{"type":"integer"},"b":{"type":"string"},"c":{}`), `{"a":null,"b":null,"c":null,"a2":1}`, `{"c":null,"a2":1}`},
		{"all", props(`"a":{"type":"integer"},"b":{"type":"string"}`), `{"a":null, "b":null}`, `{}`},
		{"in an escaped name", props(`"limit":{"type":"integer"}`), `{"li\u006dit":null}`, `{}`},
		{"not one that may be null", props(`"a":{"type":["integer","null"]},"b":{"type":"integer"}`), `{"a":null,"b":null}`, `{"a":null}`},
		{"not one that is unknown", props(`"b":{"type":"integer"}`), `{"x":null,"b":null}`, `{"x":null}`},
		{"the text null stays", props(`"a":{"type":"string"},"b":{"type":"integer"}`), `{"a":"null","b":null}`, `{"a":"null"}`},
		{"in an object", props(`"f":{"$ref":"#/$defs/F"}`, filter), `{"f":{"must":1,"limit":null,"sub":{"limit":null,"must":2}}}`, `{"f":{"must":1,"sub":{"must":2}}}`},
		{"in a list", props(`"fs":{"type":"array","items":{"$ref":"#/$defs/F"}}`, filter), `{"fs":[{"must":1,"limit":null},{"must":null}]}`, `{"fs":[{"must":1},{"must":null}]}`},
		{"in a tuple", props(`"t":{"prefixItems":[{"type":"object","properties":{"a":{"type":"string"}}}],"items":{"properties":{"b":{"type":"string"}}}}`), `{"t":[{"a":null},{"b":null}]}`, `{"t":[{},{}]}`},
		{"in an old tuple", props(`"t":{"items":[{"properties":{"a":{"type":"string"}}}],"additionalItems":{"properties":{"b":{"type":"string"}}}}`), `{"t":[{"a":null},{"b":null}]}`, `{"t":[{},{}]}`},
		{"in the one alternative that is an object", props(`"f":{"anyOf":[{"$ref":"#/$defs/F"},{"type":"null"},{"type":"string"},false]}`, filter), `{"f":{"must":1,"limit":null}}`, `{"f":{"must":1}}`},
		{"through allOf", props(`"f":{"allOf":[{"$ref":"#/$defs/F"},{"properties":{"x":{"type":"string"}}}]}`, filter), `{"f":{"must":1,"x":null,"limit":null}}`, `{"f":{"must":1}}`},
		{"null because of one of two", props(`"a":{"type":["string","null"]}`, `"allOf":[{"properties":{"a":{"type":"string"}}}]`), `{"a":null}`, `{}`},
		{"by an enum", props(`"a":{"enum":["x"]}`), `{"a":null}`, `{}`},
		{"by nothing at all", props(`"a":false`), `{"a":null}`, `{}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := strings.Clone(test.doc)
			out, findings := check(t, test.schema, test.doc)
			if findings != nil || out != test.want {
				t.Errorf("Check(%s) = %s %q, want %s", test.doc, out, findings, test.want)
			}
			if test.doc != before {
				t.Error("the caller's bytes changed")
			}
		})
	}
}

func TestNullsThatStay(t *testing.T) {
	tests := []struct {
		name, schema, doc string
		want              []string
	}{
		{"required", props(`"a":{"type":"string"}`, `"required":["a"]`), `{"a":null}`, []string{`/a: is null, must be a string @/properties/a/type`}},
		{"required elsewhere", props(`"a":{"type":"string"}`, `"allOf":[{"required":["a"]}]`), `{"a":null}`, []string{`/a: is null, must be a string @/properties/a/type`}},
		{"an item", props(`"a":{"type":"array","items":{"type":"string"}}`), `{"a":[null]}`, []string{`/a/0: is null, must be a string @/properties/a/items/type`}},
		{"of two alternatives", props(`"a":{"anyOf":[{"properties":{"x":{"type":"string"}}},{"properties":{"x":{"type":"integer"}}}]}`), `{"a":{"x":null}}`, []string{
			`/a: fits none of the 2 alternatives of anyOf @/properties/a/anyOf`,
			`/a/x: is null, must be a string @/properties/a/anyOf/0/properties/x/type`, `/a/x: is null, must be an integer @/properties/a/anyOf/1/properties/x/type`,
		}},
		{"cut, and the rest is wrong still", props(`"a":{"type":"string"},"b":{"type":"string"}`), `{"a":null,"b":1}`, []string{`/b: is a number, must be a string @/properties/b/type`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, findings := check(t, test.schema, test.doc)
			if diff := cmp.Diff(test.want, findings); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorForCallers(t *testing.T) {
	var required, wrong []string
	for i := range 30 {
		required = append(required, fmt.Sprintf(`"r%02d"`, i))
		wrong = append(wrong, fmt.Sprintf(`"w%02d":{"type":"string"}`, i))
	}
	tl := tool(t, "h", "t", props(strings.Join(wrong, ","), `"required":[`+strings.Join(required, ",")+`]`))
	_, err := tl.Arguments.Check([]byte(`{"w01":"` + strings.Repeat("s3cret", 3) + `","w07":1}`))
	e := err.(*bridge.Error) //nolint:errorlint // the contract names this very type
	if e.Kind != bridge.InvalidArguments || e.Err != nil {
		t.Errorf("kind %s, err %v", e.Kind, e.Err)
	}
	want := `The arguments do not fit the tool's schema: misses "r00"; misses "r01"; misses "r02"; and 28 more.`
	if e.Msg != want {
		t.Errorf("Msg = %s\nwant  %s", e.Msg, want)
	}
	if n := len(e.Members["errors"].([]finding)); n != 20 || e.Members["count"] != 31 {
		t.Errorf("%d errors, count %v; want 20, 31", n, e.Members["count"])
	}
	if s := fmt.Sprint(e.Members, err); strings.Contains(s, "s3cret") {
		t.Errorf("a value is in %s", s)
	}
}

func TestManyFindingsAreCounted(t *testing.T) {
	tl := tool(t, "h", "t", props(`"a":{"items":{"type":"string"}}`))
	_, err := tl.Arguments.Check([]byte(`{"a":[` + strings.Repeat("1,", 20_000) + `1]}`))
	e := err.(*bridge.Error) //nolint:errorlint // the contract names this very type
	if e.Members["count"] != 20_001 || len(e.Members["errors"].([]finding)) != 20 {
		t.Errorf("count = %v", e.Members["count"])
	}
}

func TestResults(t *testing.T) {
	tl := tool(t, "h", "t", ``, output(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	if _, err := tl.Result.Check([]byte(`{"n":1,"more":[1e999999]}`)); err != nil {
		t.Errorf("a number that cannot be calculated with: %v", err)
	}
	if _, err := tl.Result.Check([]byte(`{"n":1,"n":2,"x":{}}`)); err != nil {
		t.Errorf("a fitting result: %v", err)
	}
	_, err := tl.Result.Check([]byte(`{"n":"x"}`))
	if e := err.(*bridge.Error); e.Msg != "the structured content does not fit: /n: is a string, must be an integer." { //nolint:errorlint // the contract names this very type
		t.Errorf("Msg = %s", e.Msg)
	}
	if _, err := tl.Result.Check([]byte(`[1]`)); err == nil {
		t.Error("a list fits an object")
	}
	if _, err := tl.Result.Check([]byte(`{"n":"` + strings.Repeat("x", maxDocBytes) + `"}`)); err != nil {
		t.Errorf("a result too big to be checked: %v", err)
	}
}

func TestUnchecked(t *testing.T) {
	many := strings.Builder{}
	for i := range 12_000 {
		fmt.Fprintf(&many, `"p%d":{"type":"string"},`, i)
	}
	tests := []struct{ name, schema, why string }{
		{"a pattern that is none", props(`"a":{"pattern":"("}`), "regex"},
		{"a long pattern", props(`"a":{"pattern":"` + strings.Repeat("a", 20_000) + `"}`), "regex"},
		{"a type that is none", props(`"a":{"type":"file"}`), "valid"},
		{"a reference to a file", props(`"a":{"$ref":"file:///etc/passwd"}`), "not followed"},
		{"a reference to a host", props(`"a":{"$ref":"https://example.com/x.json"}`), "not followed"},
		{"a reference to nowhere", props(`"a":{"$ref":"#/$defs/No"}`), "not found"},
		{"a bound with a long exponent", props(`"a":{"maximum":1e999999999}`), "number"},
		{"too many parts", props(many.String() + `"z":{}`), "too many"},
		{"declared as what it is not", props(`"a":{"exclusiveMinimum":true,"minimum":1}`, `"$schema":"https://json-schema.org/draft/2020-12/schema"`), "valid"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tl := tool(t, "h", "t", test.schema)
			if tl.Arguments != nil || !strings.Contains(tl.Unchecked, test.why) || !strings.HasPrefix(tl.Unchecked, "the arguments are not checked: ") {
				t.Errorf("checker %v, Unchecked = %.300q, want one with %q", tl.Arguments != nil, tl.Unchecked, test.why)
			}
			if published(tl).input == nil {
				t.Error("it is not published")
			}
		})
	}
	both := tool(t, "h", "t", props(`"a":{"pattern":"("}`), output(props(`"b":{"pattern":"["}`)))
	if both.Result != nil || !strings.Contains(both.Unchecked, "; results are not checked: ") {
		t.Errorf("Unchecked = %q", both.Unchecked)
	}
	out := tool(t, "h", "t", ``, output(props(`"b":{"pattern":"["}`)))
	if !strings.HasPrefix(out.Unchecked, "results are not checked: ") {
		t.Errorf("Unchecked = %q", out.Unchecked)
	}
}

// An unknown $schema is no reason to fetch it, nor not to check.
func TestUnknownDialect(t *testing.T) {
	_, findings := check(t, props(`"a":{"type":"string"}`, `"$schema":"https://example.com/dialect"`), `{"a":1}`)
	if len(findings) != 1 {
		t.Errorf("findings = %q", findings)
	}
}

// logTo returns a compiler, and what it logs.
func logTo(t *testing.T) (*Schemas, *lockedBuffer) {
	t.Helper()
	var b lockedBuffer
	return NewSchemas(slog.New(slog.NewTextHandler(&b, nil))), &b
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestPatternOutOfTime(t *testing.T) {
	s, log := logTo(t)
	tl := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(props(`"a":{"type":"array","items":{"pattern":"^(\\w+\\s?)*\\$"}}`))}
	if err := s.Compile(tl); err != nil {
		t.Fatal(err)
	}
	secret := strings.Repeat("s3cret ", 8) + "!"
	doc := []byte(`{"a":[` + strings.Repeat(`"`+secret+`",`, 1000) + `1]}`)
	begun := time.Now()
	if _, err := tl.Arguments.Check(doc); err != nil {
		t.Errorf("Check: %v", err)
	}
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("a thousand strings took %v", d)
	}
	if out := log.String(); !strings.Contains(out, "not matched in time") || strings.Contains(out, "s3cret") {
		t.Errorf("the log says %.500s", out)
	}
}

// An exponential schema is given up on, not waited for.
func TestExponentialChecks(t *testing.T) {
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"D%d":{"anyOf":[{"$ref":"#/$defs/D%d"},{"$ref":"#/$defs/D%d"}]}`, i, i+1, i+1))
	}
	defs = append(defs, `"D40":{"type":"string"}`)
	tests := []struct{ name, schema, doc string }{
		{"references that double", props(`"a":{"$ref":"#/$defs/D0"}`, `"$defs":{`+strings.Join(defs, ",")+`}`), `{"a":null}`},
		{
			"recursion that doubles", props(`"e":{"$ref":"#/$defs/E"}`, `"$defs":{"E":{"oneOf":[{"properties":{"op":{"const":"and"},"l":{"$ref":"#/$defs/E"}}},{"properties":{"op":{"const":"or"},"l":{"$ref":"#/$defs/E"}}}]}}`),
			`{"e":` + strings.Repeat(`{"op":"x","l":`, 60) + `1` + strings.Repeat(`}`, 60) + `}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, log := logTo(t)
			tl := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(test.schema)}
			if err := s.Compile(tl); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			out, err := tl.Arguments.Check([]byte(test.doc))
			if err != nil || string(out) != test.doc {
				t.Errorf("Check: %s %v", out, err)
			}
			if d := time.Since(begun); d > 20*time.Second {
				t.Errorf("it took %v", d)
			}
			if !strings.Contains(log.String(), "given up") {
				t.Errorf("the log says %.500s", log)
			}
			// The next one is checked as if nothing had been.
			if _, err := tl.Arguments.Check([]byte(`{"a":"x","e":{"op":"and"}}`)); err != nil {
				t.Errorf("the next: %v", err)
			}
		})
	}
}

// A large document is checked with a count, by one at a time.
func TestLargeDocuments(t *testing.T) {
	tl := tool(t, "h", "t", props(`"a":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"string"}},"additionalProperties":false}}`))
	good := `{"a":[` + strings.Repeat(`{"x":1,"y":"b"},`, 6_000) + `{}]}`
	bad := `{"a":[` + strings.Repeat(`{"x":1,"y":"b"},`, 6_000) + `{"z":1}]}`
	huge := `{"a":[` + strings.Repeat(`{"z":1},`, 200_000) + `{}]}`
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := tl.Arguments.Check([]byte(good)); err != nil {
				t.Errorf("a good one: %v", err)
			}
			if _, err := tl.Arguments.Check([]byte(bad)); err == nil {
				t.Error("a bad one passes")
			}
			if _, err := tl.Arguments.Check([]byte(huge)); err != nil {
				t.Errorf("one too large to be checked: %v", err)
			}
		})
	}
	wg.Wait()
}

func TestCheckIsSafeForManyCallers(t *testing.T) {
	tools := []*bridge.Tool{
		tool(t, "h", "t", props(`"a":{"type":"string","pattern":"^x+$"},"n":{"type":"integer"}`, `"required":["a"]`)),
		tool(t, "h", "u", props(`"a":{"type":"string","pattern":"^x+$"},"n":{"type":"integer"},"r":{"$ref":"#"}`, `"required":["a"]`)),
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				for _, tl := range tools {
					if out, err := tl.Arguments.Check([]byte(`{"a":"xx","n":null}`)); err != nil || string(out) != `{"a":"xx"}` {
						t.Errorf("Check = %s, %v", out, err)
						return
					}
					if _, err := tl.Arguments.Check([]byte(`{"a":"y"}`)); err == nil {
						t.Error("a bad one passes")
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// A fault in the library costs the check, not the call.
func TestPanicsInTheValidator(t *testing.T) {
	s, log := logTo(t)
	c := &checker{nodes: 1, log: s.log, label: "h/t"} // without a schema
	if out, err := c.Check([]byte(`{}`)); err != nil || string(out) != `{}` {
		t.Errorf("Check = %s, %v", out, err)
	}
	if out := log.String(); !strings.Contains(out, "given up") || !strings.Contains(out, "h/t") {
		t.Errorf("the log says %q", out)
	}
	root, err := parse([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compile(newSource(root, 3), nil, s.log); err == nil || !strings.Contains(err.Error(), "panicked") { // there is no draft 3
		t.Errorf("compile = %v", err)
	}
}

func TestMeterStops(t *testing.T) {
	stopped := func(m *meter) (why any) {
		defer func() { why = recover() }()
		m.Validate(nil, nil)
		return nil
	}
	m := &meter{}
	m.reset()
	if why := stopped(m); why != nil {
		t.Errorf("the first step: %v", why)
	}
	m.steps = maxSteps
	if why := stopped(m); why != any(errSteps) {
		t.Errorf("too many steps: %v", why)
	}
	m.steps, m.deadline = 1023, time.Now().Add(-time.Second)
	if why := stopped(m); why != any(errTime) {
		t.Errorf("too late: %v", why)
	}
}

// The formats of what a person is asked for are checked, and no others.
func TestQuestion(t *testing.T) {
	s := NewSchemas(nil)
	const schema = `{"type":"object","properties":{
		"email":{"type":"string","format":"email"},"page":{"type":"string","format":"uri"},
		"born":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
		"host":{"type":"string","format":"ipv4"}},"required":["email"]}`
	check, err := s.Question([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ content, want string }{
		{`{"email":"ada@example.com","page":"https://example.com/?a=b","born":"1815-12-10","at":"1843-08-01T12:00:00Z","host":"no"}`, ""},
		{`{"email":"no"}`, "/email: is no email"},
		{`{"email":"a@b.example","page":"::"}`, "/page: is no uri"},
		{`{"email":"a@b.example","born":"1815-13-10"}`, "/born: is no date"},
		{`{"email":"a@b.example","at":"noon"}`, "/at: is no date-time"},
		{`{}`, `misses "email"`},
	} {
		_, err := check.Check([]byte(tt.content))
		if e, ok := errors.AsType[*bridge.Error](err); (err == nil) != (tt.want == "") || ok && !strings.Contains(e.Msg, tt.want) {
			t.Errorf("Check(%s) = %v, want %q", tt.content, err, tt.want)
		}
	}
	// That of a tool only tells something.
	tool := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(schema)}
	if err := s.Compile(tool); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Arguments.Check([]byte(`{"email":"no"}`)); err != nil {
		t.Errorf("a tool's argument: %v", err)
	}

	if check, err := s.Question([]byte(`{"type":"object"}`)); check != nil || err != nil {
		t.Errorf("of anything: %v, %v", check, err)
	}
	for schema, want := range map[string]string{`{"type":"string"}`: "it describes no object", `{`: "it is not JSON"} {
		if _, err := s.Question([]byte(schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Question(%s) = %v, want %q", schema, err, want)
		}
	}
}
