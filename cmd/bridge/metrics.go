package main

import (
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/telemetry"
)

// newMetrics makes the metrics of the app, which say at each scrape what /status says.
func (a *app) newMetrics(keeper *artifacts.Keeper) *telemetry.Metrics {
	return telemetry.NewMetrics(version, func() []telemetry.Sample { return a.samples(keeper) })
}

// observe counts a call that has ended, unless nobody can see that.
func (a *app) observe(server string, code bridge.Kind, took time.Duration) {
	if a.metrics == nil {
		return
	}
	a.metrics.Call(server, string(code), took)
}

func (a *app) samples(keeper *artifacts.Keeper) []telemetry.Sample {
	st := a.status(keeper)
	all := []telemetry.Sample{
		{Name: "ready", Help: "1 once every server has answered or failed its first attempt, or was waited for long enough.", Value: number(st.Ready)},
		{Name: "waiting_calls", Help: "Calls in line for admission.", Value: float64(st.Waiting)},
		{Name: "processes", Help: "Processes of MCP servers that run or are being started.", Value: float64(st.Processes)},
	}
	states := map[bridge.State]int{}
	for _, s := range a.catalogue.Snapshot(bridge.Caller{}).Servers {
		states[s.State]++
	}
	for _, state := range []bridge.State{bridge.Connecting, bridge.Ready, bridge.Idle, bridge.Degraded, bridge.Failed, bridge.NeedsAuth, bridge.Disabled} {
		all = append(all, telemetry.Sample{Name: "servers", Help: "Servers by their state.", Value: float64(states[state]), Labels: []string{"state", string(state)}})
	}
	open := map[string]float64{} // endpoints of one name, one for each user, say, are told together
	for _, e := range st.Endpoints {
		open[e.Name] += number(e.Circuit.State != "closed")
	}
	for name, n := range open {
		all = append(all, telemetry.Sample{Name: "open_circuits", Help: "Circuits of an endpoint that are not closed.", Value: n, Labels: []string{"endpoint", name}})
	}
	if k := st.Artifacts; k != nil {
		all = append(all,
			telemetry.Sample{Name: "artifacts_total", Help: "Results by what became of them as artifacts.", Counter: true, Value: float64(k.Kept), Labels: []string{"result", "kept"}},
			telemetry.Sample{Name: "artifacts_total", Help: "Results by what became of them as artifacts.", Counter: true, Value: float64(k.TooBig), Labels: []string{"result", "too_big"}},
			telemetry.Sample{Name: "artifacts_total", Help: "Results by what became of them as artifacts.", Counter: true, Value: float64(k.Failed), Labels: []string{"result", "failed"}},
			telemetry.Sample{Name: "artifact_store_down", Help: "1 if the store of artifacts could not be reached when that was last tried.", Value: number(k.Down)})
	}
	if a.tracing != nil {
		sent, lost := a.tracing.Spans()
		all = append(all,
			telemetry.Sample{Name: "trace_spans_total", Help: "Spans by what became of them.", Counter: true, Value: float64(sent), Labels: []string{"result", "sent"}},
			telemetry.Sample{Name: "trace_spans_total", Help: "Spans by what became of them.", Counter: true, Value: float64(lost), Labels: []string{"result", "lost"}})
	}
	if c := st.Config; c != nil {
		all = append(all,
			telemetry.Sample{Name: "config_reloads_total", Help: "Changes of the configuration by how they went.", Counter: true, Value: float64(c.Reloads), Labels: []string{"result", "applied"}},
			telemetry.Sample{Name: "config_reloads_total", Help: "Changes of the configuration by how they went.", Counter: true, Value: float64(c.Failed), Labels: []string{"result", "failed"}},
			telemetry.Sample{Name: "config_stale", Help: "1 if the last change could not be applied.", Value: number(c.Stale)},
			telemetry.Sample{Name: "config_applied_timestamp_seconds", Help: "When a configuration was last applied.", Value: float64(c.Applied.Unix())})
	}
	return all
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
