package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"mcpbridge/clients/gen/shapes"
)

// callShapes calls tools whose arguments have every shape, and gets the same back.
func callShapes(ctx context.Context) error {
	c, err := shapes.NewClientWithResponses(os.Getenv("SHAPES") + "/tools/shapes_golang")
	if err != nil {
		return err
	}
	var one shapes.UnionsJSONBody_One
	var list shapes.UnionsJSONBody_List
	var mixed shapes.EnumerationJSONBody_Mixed
	if err := errors.Join(one.FromUnionsJSONBodyOne1(7), list.FromUnionsJSONBodyList1([]string{"a"}), mixed.FromEnumerationJSONBodyMixed0("a")); err != nil {
		return err
	}
	kind, version := shapes.ConstantJSONBodyKindCircle, shapes.ConstantJSONBodyVersion(1)
	mode, maybe := shapes.EnumerationJSONBodyModeFast, shapes.EnumerationJSONBodyMaybe("on")
	leaf := shapes.ShapesGolangRecursionNode{Label: "leaf"}
	root := shapes.ShapesGolangRecursionNode{Label: "root", Children: &[]shapes.ShapesGolangRecursionNode{leaf}}

	recursion, err1 := c.RecursionWithResponse(ctx, shapes.RecursionJSONRequestBody{Root: root})
	constant, err2 := c.ConstantWithResponse(ctx, shapes.ConstantJSONRequestBody{Kind: &kind, Version: &version})
	enumeration, err3 := c.EnumerationWithResponse(ctx, shapes.EnumerationJSONRequestBody{Mode: &mode, Mixed: &mixed, Maybe: &maybe, Flags: new(false)})
	tuple, err4 := c.TupleWithResponse(ctx, shapes.TupleJSONRequestBody{Point: &[]float64{1, 2.5}, Open: &[]any{"a", 1.0}})
	unions, err5 := c.UnionsWithResponse(ctx, shapes.UnionsJSONRequestBody{One: &one, Some: new("x"), List: &list})
	labels, err6 := c.MapWithResponse(ctx, shapes.MapJSONRequestBody{Labels: &map[string]string{"a": "b"}})
	names, err7 := c.NamesWithResponse(ctx, shapes.NamesJSONRequestBody{UnderscoreUnderscoreTop: new("1"), Class: new("2"), Grüße: new("3"), Tofrom: new("4"), Ref: new("5")})
	ints, err8 := c.MapAtTheRootWithResponse(ctx, shapes.MapAtTheRootJSONRequestBody{"a": 1})
	nothing, err9 := c.NoArgumentsWithResponse(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9); err != nil {
		return err
	}
	return errors.Join(
		same("recursion", recursion.JSON200, recursion.Body, `{"root":{"label":"root","children":[{"label":"leaf"}]}}`),
		same("constant", constant.JSON200, constant.Body, `{"kind":"circle","version":1}`),
		same("enumeration", enumeration.JSON200, enumeration.Body, `{"mode":"fast","mixed":"a","maybe":"on","flags":false}`),
		same("tuple", tuple.JSON200, tuple.Body, `{"point":[1,2.5],"open":["a",1]}`),
		same("unions", unions.JSON200, unions.Body, `{"one":7,"some":"x","list":["a"]}`),
		same("map", labels.JSON200, labels.Body, `{"labels":{"a":"b"}}`),
		same("names", names.JSON200, names.Body, `{"__top":"1","class":"2","grüße":"3","to/from":"4","$ref":"5"}`),
		same("map-at-the-root", ints.JSON200, ints.Body, `{"content":[{"type":"text","text":"{\"a\":1}"}]}`),
		same("no-arguments", nothing.JSON200, nothing.Body, `{"content":[{"type":"text","text":"{}"}]}`),
	)
}

// same fails unless the answer, as the generated types hold it, is this JSON.
func same[T any](tool string, got *T, body []byte, want string) error {
	if got == nil {
		return fmt.Errorf("%s: unexpected answer: %s", tool, body)
	}
	b, err := json.Marshal(got)
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	var g, w any
	if err := errors.Join(json.Unmarshal(b, &g), json.Unmarshal([]byte(want), &w)); err != nil {
		return err
	}
	if !reflect.DeepEqual(g, w) {
		return fmt.Errorf("%s: got %s, want %s", tool, b, want)
	}
	return nil
}
