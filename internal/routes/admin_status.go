package routes

import "time"

// A ConfigStatus is how the configuration is, and how changing it went.
type ConfigStatus struct {
	Sources  []string       `json:"sources" nullable:"false" doc:"Where servers come from: file, redis, state file, or command line."`
	Stale    bool           `json:"stale" doc:"The last change could not be applied: what runs is the configuration before it."`
	Errors   []string       `json:"errors,omitempty" doc:"Why it could not be applied."`
	Restart  []string       `json:"restart,omitempty" doc:"Settings that were changed in the file and take a restart."`
	Unusable []string       `json:"unusable,omitempty" doc:"Entries of the administration that are not in use, and why."`
	Applied  time.Time      `json:"applied" doc:"When a configuration was last applied."`
	Tried    time.Time      `json:"tried" doc:"When a change was last looked at."`
	Reloads  int64          `json:"reloads" doc:"Changes that were applied since the start."`
	Failed   int64          `json:"failed" doc:"Changes that could not be applied."`
	Entries  map[string]int `json:"entries" nullable:"false" doc:"How many servers come from where, those of users included."`
}
