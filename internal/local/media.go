package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addMedia adds the tools whose results are more than text.
func addMedia(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{
		Name: "picture", Title: "Draw a picture", Annotations: pure(),
		Description: "Draws a bridge, as a PNG.",
		InputSchema: pictureSchema,
	}, picture)
	mcp.AddTool(s, &mcp.Tool{
		Name: "mixed", Title: "One block of each kind", Annotations: pure(),
		Description: "Answers a text, a picture, a sound, an embedded note, and a link to another.",
	}, mixed)
}

type pictureArgs struct {
	Width int `json:"width"`
}

var pictureSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"width": {"type": "integer", "minimum": 16, "maximum": 1024, "default": 128, "description": "of the picture, in pixels; it is half as high"}
	},
	"additionalProperties": false
}`)

func picture(_ context.Context, _ *mcp.CallToolRequest, a pictureArgs) (*mcp.CallToolResult, any, error) {
	b, err := draw(a.Width)
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: b}}}, nil, nil
}

func mixed(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	b, err := draw(64)
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.TextContent{Text: "A picture, a sound, a note and a link."},
		&mcp.ImageContent{MIMEType: "image/png", Data: b},
		&mcp.AudioContent{MIMEType: "audio/wav", Data: beep()},
		&mcp.EmbeddedResource{Resource: notes[0].contents()},
		&mcp.ResourceLink{URI: notes[1].uri(), Name: notes[1].ID, Title: notes[1].Title, MIMEType: noteType},
	}}, nil, nil
}

// draw returns a PNG of a suspension bridge, w pixels wide and half as high.
func draw(w int) ([]byte, error) {
	h := w / 2
	sky, water, steel := color.NRGBA{250, 224, 196, 255}, color.NRGBA{72, 118, 150, 255}, color.NRGBA{150, 52, 40, 255}
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{sky, water, steel})
	for y := range h {
		for x := range w {
			u, v := float64(x)/float64(w), float64(y)/float64(h)
			// The cable hangs in a parabola between towers at 1/4 and 3/4 of the width, and falls straight to the banks.
			cable := 0.15 + 0.5*(1-16*(u-0.5)*(u-0.5))
			if math.Abs(u-0.5) > 0.25 {
				cable = 0.15 + 2*(math.Abs(u-0.5)-0.25)
			}
			tower := math.Abs(math.Abs(u-0.5)-0.25) < 0.012 && v > 0.12
			hanger := x%max(4, w/24) == 0 && v > cable && v < 0.7
			deck := v > 0.68 && v < 0.73
			switch {
			case tower, hanger, deck, math.Abs(v-cable) < 0.02:
				img.SetColorIndex(x, y, 2)
			case v > 0.85:
				img.SetColorIndex(x, y, 1)
			}
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

// beep returns a WAV of a tenth of a second of 440 Hz, 8 bits, one channel.
func beep() []byte {
	const rate, samples = 8000, 800
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, rate) // samples per second
	b = binary.LittleEndian.AppendUint32(b, rate) // bytes per second
	b = append(b, 1, 0, 8, 0, 'd', 'a', 't', 'a')
	b = binary.LittleEndian.AppendUint32(b, samples)
	for i := range samples {
		b = append(b, byte(128+100*math.Sin(2*math.Pi*440*float64(i)/rate)))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}
