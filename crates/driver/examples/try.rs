use std::collections::BTreeMap;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let sizes: BTreeMap<String, i128> = args[2..].iter().map(|a| { let (k, v) = a.split_once('=').unwrap(); (k.to_string(), v.parse().unwrap()) }).collect();
    let module = match systola_driver::load(&text) { Ok(m) => m, Err(e) => { for d in e { println!("PARSE {d} {:?} {:?}", d.span(), d.help); } return; } };
    for s in &module.systems {
        let t = std::time::Instant::now();
        let ds = systola_driver::check_system(s, &sizes);
        println!("system {} {} diags {:?}", s.name, ds.len(), t.elapsed());
        for d in ds { println!("   {d} {:?}", d.notes); }
    }
    for m in &module.mappings {
        let t = std::time::Instant::now();
        let r = systola_driver::check_mapping(&module, m, &sizes);
        let el = t.elapsed();
        match r {
            Ok(c) => {
                println!("{} legal {} {:?} {:?} regs {:?}/{:?}  {:?}", m.name, c.report.name, c.report.scope, c.report.counts.as_ref().map(|c| (c.points, c.pes, c.steps, c.outturn, c.utilisation, c.period)), c.report.registers_per_pe, c.report.coalesced_per_pe, el);
                for l in &c.report.links { println!("    {} -> {} e={} disp={} delay={} {:?} {:?}", l.source, l.sink, l.distance, l.displacement, l.delay, l.realisation, l.guard); }
                for g in &c.array.guards { println!("    guard {} kept={} {}", g.effect, g.kept, g.reason); }
                println!("    reverse {:?}", c.report.reverse);
            }
            Err(e) => for d in e { println!("{} REFUSED {d} help={:?} notes={:?} ex={:?} {:?}", m.name, d.help, d.notes, d.counterexample, el); },
        }
    }
}
