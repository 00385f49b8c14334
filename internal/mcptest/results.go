package mcptest

// exact are results that lose something in any decoding to Go values: what
// comes out of a bridge must have these very bytes.
func exact([]string) (*server, error) {
	return newServer(append(kit(), exactTools()...)...), nil
}

// The structured contents and blocks of mode [Exact], for comparing.
const (
	// ExactNumbers is the structuredContent of the tool numbers: digits, exponents, key order, escapes and white space.
	ExactNumbers = `{"z":9007199254740993,"price":1.10,"a":1e400,"tiny":-0.0,"exp":1E+2,"nested":{"b":[1.0,2.50],"a":null}, "A\u002fb":"\u00e9\/","html":"<b>&</b>"}`
	// ExactBlocks is the content of the tool unknown_blocks: kinds and members that no specification has.
	ExactBlocks = `[{"type":"hologram","data":{"z":1,"a":2.0}},{"type":"text","text":"known","future":{"n":1e400}},{"type":"text","annotations":{"priority":0.50},"text":"last"}]`
	// ExactMeta is the _meta of the tool meta's result.
	ExactMeta = `{"example.com/z":9007199254740993,"example.com/a":[1.0]}`
	// ExactSurrogate is the structuredContent of the tool surrogate: escapes that name no character.
	ExactSurrogate = `{"lone":"\ud83d","back":"\udc00\ud83d","pair":"\ud83d\ude00","nul":"\u0000"}`
)

func exactTools() []*tool {
	return []*tool{
		fixed("numbers", "Answers numbers that floats change, and keys out of order.",
			`{"structuredContent":`+ExactNumbers+`,"content":[{"type":"text","text":"numbers"}]}`, readOnly),
		fixed("unknown_blocks", "Answers kinds of blocks that nobody knows.", `{"content":`+ExactBlocks+`}`, readOnly),
		fixed("meta", "Answers a result with _meta and a member of its own.",
			`{"_meta":`+ExactMeta+`,"content":[{"type":"text","text":"see _meta"}],"structuredContent":{"n":1.0},"futureMember":[1.0]}`, readOnly),
		fixed("surrogate", "Answers escapes of lone surrogates.", `{"content":[],"structuredContent":`+ExactSurrogate+`}`, readOnly),
	}
}

// What the tools of mode [Results] hold, for comparing.
const (
	// PNG is an image of one pixel, WAV a sound of one sample, PDF eight bytes that claim to be a document; all base64.
	PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	WAV = "UklGRiUAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACA"
	PDF = "JVBERi0xLjQ="
)

const (
	textBlock  = `{"type":"text","text":"a picture of one pixel"}`
	imageBlock = `{"type":"image","data":"` + PNG + `","mimeType":"image/png"}`
	audioBlock = `{"type":"audio","data":"` + WAV + `","mimeType":"audio/wav"}`
	textRes    = `{"type":"resource","resource":{"uri":"file:///notes.txt","mimeType":"text/plain","text":"the notes"}}`
	blobRes    = `{"type":"resource","resource":{"uri":"file:///paper.pdf","mimeType":"application/pdf","blob":"` + PDF + `"}}`
	htmlRes    = `{"type":"resource","resource":{"uri":"ui://page","mimeType":"text/html","blob":"PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg=="}}`
	linkBlock  = `{"type":"resource_link","uri":"file:///big.csv","name":"big.csv","title":"Big","mimeType":"text/csv","size":123456}`
)

func results([]string) (*server, error) {
	const person = `,"outputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`
	all := []*tool{
		fixed("text", "One text block.", `{"content":[`+textBlock+`]}`, ``),
		fixed("two_texts", "Two text blocks.", `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`, ``),
		fixed("text_image", "A text and an image.", `{"content":[`+textBlock+`,`+imageBlock+`]}`, ``),
		fixed("image", "An image.", `{"content":[`+imageBlock+`]}`, ``),
		fixed("audio", "A sound.", `{"content":[`+audioBlock+`]}`, ``),
		fixed("embedded_text", "An embedded resource that is text.", `{"content":[`+textRes+`]}`, ``),
		fixed("embedded_blob", "An embedded resource that is bytes.", `{"content":[`+blobRes+`]}`, ``),
		fixed("embedded_html", "An embedded resource that is HTML with a script.", `{"content":[`+htmlRes+`]}`, ``),
		fixed("resource_link", "A link to a resource.", `{"content":[`+linkBlock+`]}`, ``),
		fixed("all_blocks", "A block of each kind.", `{"content":[`+textBlock+`,`+imageBlock+`,`+audioBlock+`,`+textRes+`,`+blobRes+`,`+linkBlock+`]}`, ``),
		fixed("empty", "No block at all.", `{"content":[]}`, ``),
		fixed("no_content", "A result without any member.", `{}`, ``),
		fixed("json_text", "One text block that holds JSON.", `{"content":[{"type":"text","text":"{\"n\": 1.10, \"a\": []}"}]}`, ``),
		fixed("disk_full", "An error of the tool's own.", `{"content":[{"type":"text","text":"disk full"}],"isError":true}`, ``),
		fixed("silent_error", "An error that says nothing.", `{"content":[],"isError":true}`, ``),
		fixed("structured_error", "An error with structured content.", `{"content":[],"structuredContent":{"errno":28},"isError":true}`, ``),
		fixed("structured", "Structured content that keeps its schema.", `{"content":[{"type":"text","text":"Ada"}],"structuredContent":{"name":"Ada"}}`, person),
		fixed("structured_empty_content", "Structured content and no block.", `{"content":[],"structuredContent":{"name":"Ada"}}`, person),
		fixed("structured_no_content", "Structured content, and content is missing.", `{"structuredContent":{"name":"Ada"}}`, person),
		fixed("structured_extra", "Structured content with a key that its schema forbids.", `{"content":[],"structuredContent":{"name":"Ada","age":36}}`, person),
		fixed("structured_list", "Structured content that is an array.", `{"content":[],"structuredContent":[{"n":1},{"n":2.0}]}`,
			`,"outputSchema":{"type":"array","items":{"type":"object"}}`),
		fixed("structured_null", "Structured content that is null.", `{"content":[`+textBlock+`],"structuredContent":null}`, ``),
		fixed("breach", "Text, where its schema promises structured content.", `{"content":[`+textBlock+`]}`, person),
		fixed("breach_type", "Structured content of another type than its schema says.", `{"content":[],"structuredContent":{"name":5}}`, person),
	}
	return newServer(all...), nil
}
