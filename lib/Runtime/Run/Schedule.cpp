//===- Schedule.cpp -------------------------------------------------------===//
//
// [Note: recursive schedules]
// PyTorch computes most learning rates from the one before, so that schedulers can be chained: the same is done here,
// in the same order of operations, for the same numbers. That order begins where its objects are made: each takes a
// first step then, which a sequence takes back from all of its parts before its first one takes it again.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Run/Schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

using namespace spmd::runtime;

static constexpr double kPi = 3.141592653589793;

namespace {

/// A scheduler of PyTorch's that counts its steps (last_epoch): the rate of each is made from that of the one before.
class Counting : public Schedule {
public:
  void begin(Rate &rate) override {
    epoch = -1;
    beginAgain(rate);
  }
  void beginAgain(Rate &rate) override {
    ++epoch;
    rate.value = next(rate, /*isInitial=*/true);
  }
  void step(Rate &rate) override {
    ++epoch;
    rate.value = next(rate, /*isInitial=*/false);
  }
  void enter(Rate &rate) override {
    epoch = 0;
    rate.value = first(rate.initial);
  }
  void undo() override { --epoch; }

protected:
  /// get_lr(): the rate at `epoch`.
  virtual double next(const Rate &rate, bool isInitial) = 0;
  /// _get_closed_form_lr() at step 0.
  virtual double first(double initial) { return initial; }
  int64_t epoch = -1;
};

struct Constant final : Counting {
  double factor;
  int64_t iters;
  Constant(double factor, int64_t iters) : factor(factor), iters(iters) {}
  double first(double initial) override { return initial * factor; }
  double next(const Rate &rate, bool) override {
    if (epoch == 0)
      return rate.value * factor;
    return epoch == iters ? rate.value * (1.0 / factor) : rate.value;
  }
};

struct Linear final : Counting {
  double from, to;
  int64_t iters;
  Linear(double from, double to, int64_t iters) : from(from), to(to), iters(iters) {}
  double first(double initial) override { return initial * from; }
  double next(const Rate &rate, bool isInitial) override {
    if (epoch == 0)
      return rate.value * from;
    if (isInitial || epoch > iters)
      return rate.value;
    double before = static_cast<double>(iters) * from + static_cast<double>(epoch - 1) * (to - from);
    return rate.value * (1.0 + (to - from) / before);
  }
};

struct Step final : Counting {
  int64_t size;
  double gamma;
  Step(int64_t size, double gamma) : size(size), gamma(gamma) {}
  double next(const Rate &rate, bool) override { return epoch == 0 || epoch % size ? rate.value : rate.value * gamma; }
};

struct MultiStep final : Counting {
  std::vector<int64_t> milestones;
  double gamma;
  MultiStep(std::vector<int64_t> milestones, double gamma) : milestones(std::move(milestones)), gamma(gamma) {}
  double first(double initial) override { return initial * power(0); }
  double next(const Rate &rate, bool) override { return rate.value * power(epoch); }
  double power(int64_t at) const {
    return std::pow(gamma, static_cast<double>(std::count(milestones.begin(), milestones.end(), at)));
  }
};

struct Exponential final : Counting {
  double gamma;
  explicit Exponential(double gamma) : gamma(gamma) {}
  double next(const Rate &rate, bool isInitial) override { return isInitial ? rate.value : rate.value * gamma; }
};

struct Polynomial final : Counting {
  int64_t iters;
  double power;
  Polynomial(int64_t iters, double power) : iters(iters), power(power) {}
  double next(const Rate &rate, bool isInitial) override {
    if (isInitial || epoch > iters)
      return rate.value;
    auto all = static_cast<double>(iters), now = static_cast<double>(epoch);
    return rate.value * std::pow((1.0 - now / all) / (1.0 - (now - 1) / all), power);
  }
};

struct Cosine final : Counting {
  int64_t period;
  double least;
  Cosine(int64_t period, double least) : period(period), least(least) {}
  double first(double initial) override { return least + (initial - least) * 2 / 2; }
  double next(const Rate &rate, bool isInitial) override {
    if (isInitial)
      return rate.value;
    auto length = static_cast<double>(period), now = static_cast<double>(epoch);
    if ((epoch - 1 - period) % (2 * period) == 0)
      return rate.value + (rate.initial - least) * (1 - std::cos(kPi / length)) / 2;
    return (1 + std::cos(kPi * now / length)) / (1 + std::cos(kPi * (now - 1) / length)) * (rate.value - least) + least;
  }
};

/// It makes the rate from the initial one, also where it is one of a chain.
struct Restarts final : Counting {
  int64_t start, multiple, position = 0, period = 0;
  double least;
  Restarts(int64_t start, int64_t multiple, double least) : start(start), multiple(multiple), least(least) {}
  void enter(Rate &rate) override {
    epoch = 0;
    rate.value = at(rate);
  }
  double next(const Rate &rate, bool) override {
    if (epoch <= 0) { // its step() goes on at 0 from anything before
      epoch = position = 0;
      period = start;
    } else if (++position >= period) {
      position %= period;
      period *= multiple;
    }
    return at(rate);
  }
  double at(const Rate &rate) const {
    double part = static_cast<double>(position) / static_cast<double>(period);
    return least + (rate.initial - least) * (1 + std::cos(kPi * part)) / 2;
  }
};

struct OneCycle final : Schedule {
  struct Phase {
    double end, rates[2], momenta[2];
  };
  std::vector<Phase> phases;
  double initial;
  int64_t total;
  bool isLinear, cycles;
  int64_t epoch = 0;

  OneCycle(double most, int64_t steps, double start, bool isLinear, bool cycles, double baseMomentum,
           double maxMomentum, double divide, double divideLast, bool threePhases)
      : initial(most / divide), total(steps), isLinear(isLinear), cycles(cycles) {
    double last = initial / divideLast, up = start * static_cast<double>(steps) - 1;
    phases.push_back({up, {initial, most}, {maxMomentum, baseMomentum}});
    if (threePhases) {
      phases.push_back({2 * start * static_cast<double>(steps) - 2, {most, initial}, {baseMomentum, maxMomentum}});
      phases.push_back({static_cast<double>(steps - 1), {initial, last}, {maxMomentum, maxMomentum}});
    } else {
      phases.push_back({static_cast<double>(steps - 1), {most, last}, {baseMomentum, maxMomentum}});
    }
  }
  void begin(Rate &rate) override {
    epoch = 0;
    rate.value = interpolate(&Phase::rates);
  }
  void step(Rate &rate) override {
    ++epoch;
    rate.value = interpolate(&Phase::rates);
  }
  // It is no part of another (parsePart).
  void enter(Rate &rate) override { begin(rate); }
  void beginAgain(Rate &rate) override { begin(rate); }
  void undo() override {}
  std::optional<int64_t> steps() const override { return total; }
  std::optional<double> momentum() const override {
    return cycles ? std::optional(interpolate(&Phase::momenta)) : std::nullopt;
  }
  double interpolate(double (Phase::*values)[2]) const {
    double begin = 0, now = static_cast<double>(std::min(epoch, total - 1));
    for (const Phase &phase : phases) {
      const double (&ends)[2] = phase.*values;
      if (now <= phase.end || &phase == &phases.back()) {
        double part = (now - begin) / (phase.end - begin);
        if (isLinear)
          return (ends[1] - ends[0]) * part + ends[0];
        return ends[1] + (ends[0] - ends[1]) / 2.0 * (std::cos(kPi * part) + 1);
      }
      begin = phase.end;
    }
    return 0;
  }
};

/// A schedule of schedules, whose objects are made before its own.
struct Composed : Schedule {
  std::vector<std::unique_ptr<Schedule>> parts;

  void begin(Rate &rate) override {
    for (std::unique_ptr<Schedule> &part : parts)
      part->begin(rate);
  }
  // PyTorch's _initial_step() is a step of the parts, which do not know that it is the first.
  void beginAgain(Rate &rate) override { step(rate); }
  void undo() override {
    for (std::unique_ptr<Schedule> &part : parts)
      part->undo();
  }
  void enter(Rate &) override {} // no sequence comes to one (parseSequential)
};

struct Sequential final : Composed {
  std::vector<int64_t> milestones;
  int64_t epoch = 0;

  void begin(Rate &rate) override {
    Composed::begin(rate);
    rate.value = rate.initial;
    undo();
    epoch = 0;
    parts.front()->beginAgain(rate);
  }
  void step(Rate &rate) override {
    ++epoch;
    auto index =
        static_cast<size_t>(std::upper_bound(milestones.begin(), milestones.end(), epoch) - milestones.begin());
    if (index > 0 && milestones[index - 1] == epoch)
      parts[index]->enter(rate);
    else
      parts[index]->step(rate);
  }
};

struct Chained final : Composed {
  void step(Rate &rate) override {
    for (std::unique_ptr<Schedule> &part : parts)
      part->step(rate);
  }
};

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// The arguments of one schedule, "T_max=100,eta_min=0"; what is wrong with them is the first error.
class Arguments {
public:
  Arguments(const std::string &text) : whole(text) {
    size_t colon = text.find(':');
    name = text.substr(0, colon);
    for (size_t at = colon; at != std::string::npos;) {
      size_t end = text.find(',', at + 1);
      std::string entry = text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
      size_t equals = entry.find('=');
      if (equals == std::string::npos)
        fail("expected NAME=VALUE, found '" + entry + "'");
      else
        given[entry.substr(0, equals)] = entry.substr(equals + 1);
      at = end;
    }
  }

  double number(const std::string &key, std::optional<double> otherwise, double least = -INFINITY,
                double most = INFINITY) {
    std::optional<std::string> text = take(key);
    if (!text && !otherwise)
      fail("needs " + key);
    double value = otherwise.value_or(0);
    if (text && !parse(*text, value))
      fail(key + " is '" + *text + "', expected a number");
    if (text && !(value >= least && value <= most))
      fail(key + " is " + *text + ", expected " + (most < INFINITY ? "from " : "at least ") + print(least) +
           (most < INFINITY ? " to " + print(most) : ""));
    return value;
  }
  int64_t count(const std::string &key, std::optional<int64_t> otherwise) {
    double value = number(key, otherwise ? std::optional(static_cast<double>(*otherwise)) : std::nullopt, 1, 0x1p40);
    if (value != std::floor(value))
      fail(key + " is " + print(value) + ", expected a whole number");
    return std::max<int64_t>(1, static_cast<int64_t>(value));
  }
  bool flag(const std::string &key, bool otherwise) {
    std::string value = oneOf(key, {"true", "false"}, otherwise ? "true" : "false");
    return value == "true";
  }
  std::string oneOf(const std::string &key, std::vector<std::string> allowed, const std::string &otherwise) {
    std::string value = take(key).value_or(otherwise), list;
    for (const std::string &entry : allowed)
      list += (list.empty() ? "" : ", ") + entry;
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      fail(key + " is '" + value + "', expected one of " + list);
    return value;
  }
  std::vector<int64_t> counts(const std::string &key) {
    std::vector<int64_t> values;
    std::string text = take(key).value_or("");
    for (size_t at = 0; at <= text.size();) {
      size_t end = std::min(text.find('+', at), text.size());
      double value = 0;
      if (!parse(text.substr(at, end - at), value) || value < 0 || value != std::floor(value) || value > 0x1p40)
        fail(key + " is '" + text + "', expected steps such as 30+80");
      values.push_back(static_cast<int64_t>(value));
      at = end + 1;
    }
    return values;
  }

  /// The first error; an argument that nobody has asked for is one.
  Status finish() {
    if (!given.empty()) // rather than the one that is missing: it may be that one, misspelt
      error = "has no argument '" + given.begin()->first + "'; it has " + known;
    return error.empty() ? Status::success() : Status::badInput("schedule '" + whole + "': " + error);
  }
  static bool parse(const std::string &text, double &value) {
    char *end = nullptr;
    value = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == 0 && std::isfinite(value);
  }

  std::string name;

private:
  void fail(const std::string &what) {
    if (error.empty())
      error = what;
  }
  std::optional<std::string> take(const std::string &key) {
    known += (known.empty() ? "" : ", ") + key;
    auto found = given.find(key);
    if (found == given.end())
      return std::nullopt;
    std::string value = found->second;
    given.erase(found);
    return value;
  }
  static std::string print(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }

  std::string whole, known, error;
  std::map<std::string, std::string> given;
};

} // namespace

static std::unique_ptr<Schedule> makeOneCycle(Arguments &a) {
  double most = a.number("max_lr", std::nullopt, 0);
  int64_t steps = a.count("total_steps", std::nullopt);
  double start = a.number("pct_start", 0.3, 0, 1);
  bool isLinear = a.oneOf("anneal_strategy", {"cos", "linear"}, "cos") == "linear";
  bool cycles = a.flag("cycle_momentum", true);
  double least = a.number("base_momentum", 0.85), largest = a.number("max_momentum", 0.95);
  double divide = a.number("div_factor", 25, 1e-12), divideLast = a.number("final_div_factor", 1e4, 1e-12);
  return std::make_unique<OneCycle>(most, steps, start, isLinear, cycles, least, largest, divide, divideLast,
                                    a.flag("three_phase", false));
}

static std::unique_ptr<Schedule> makeSimple(Arguments &a) {
  if (a.name == "constant") {
    double factor = a.number("factor", 1.0 / 3, 1e-12, 1);
    return std::make_unique<Constant>(factor, a.count("total_iters", 5));
  }
  if (a.name == "linear") {
    double from = a.number("start_factor", 1.0 / 3, 1e-12, 1), to = a.number("end_factor", 1, 0, 1);
    return std::make_unique<Linear>(from, to, a.count("total_iters", 5));
  }
  if (a.name == "warmup") {
    int64_t iters = a.count("total_iters", std::nullopt);
    return std::make_unique<Linear>(1.0 / static_cast<double>(iters), 1.0, iters);
  }
  if (a.name == "step") {
    int64_t size = a.count("step_size", std::nullopt);
    return std::make_unique<Step>(size, a.number("gamma", 0.1));
  }
  if (a.name == "multistep") {
    std::vector<int64_t> milestones = a.counts("milestones");
    return std::make_unique<MultiStep>(milestones, a.number("gamma", 0.1));
  }
  if (a.name == "exponential")
    return std::make_unique<Exponential>(a.number("gamma", std::nullopt));
  if (a.name == "polynomial") {
    int64_t iters = a.count("total_iters", 5);
    return std::make_unique<Polynomial>(iters, a.number("power", 1));
  }
  if (a.name == "cosine") {
    int64_t period = a.count("T_max", std::nullopt);
    return std::make_unique<Cosine>(period, a.number("eta_min", 0));
  }
  if (a.name == "restarts") {
    int64_t start = a.count("T_0", std::nullopt), multiple = a.count("T_mult", 1);
    return std::make_unique<Restarts>(start, multiple, a.number("eta_min", 0));
  }
  return a.name == "onecycle" ? makeOneCycle(a) : nullptr;
}

/// What is between the parentheses, cut at semicolons outside of inner ones.
static std::vector<std::string> splitParts(const std::string &text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == ';' && depth == 0)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  return parts;
}

static Expected<std::unique_ptr<Schedule>> parsePart(const std::string &text) {
  Expected<std::unique_ptr<Schedule>> part = parseSchedule(text);
  if (part && dynamic_cast<OneCycle *>(part->get()))
    return Status::badInput("schedule '" + text + "': a one-cycle is a schedule of its own, and no part of another");
  return part;
}

static Expected<std::unique_ptr<Schedule>> parseSequential(const std::string &text, const std::string &inner) {
  std::vector<std::string> parts = splitParts(inner);
  auto schedule = std::make_unique<Sequential>();
  auto bad =
      Status::badInput("schedule '" + text + "': expected sequential(SCHEDULE;STEP;SCHEDULE), with rising steps");
  if (parts.size() % 2 == 0)
    return bad;
  for (size_t i = 0; i < parts.size(); ++i) {
    double value = 0;
    if (i % 2 == 1) {
      if (!Arguments::parse(parts[i], value) || value != std::floor(value) || value < 1 || value > 0x1p40 ||
          (!schedule->milestones.empty() && static_cast<int64_t>(value) <= schedule->milestones.back()))
        return bad;
      schedule->milestones.push_back(static_cast<int64_t>(value));
      continue;
    }
    Expected<std::unique_ptr<Schedule>> part = parsePart(parts[i]);
    if (!part)
      return part;
    if (i > 0 && dynamic_cast<Composed *>(part->get()))
      return Status::badInput("schedule '" + text +
                              "': a sequence begins with a sequential or chained schedule, or has none "
                              "(PyTorch's SequentialLR cannot come to one); write the parts of '" +
                              parts[i] + "' in its place");
    schedule->parts.push_back(std::move(*part));
  }
  return std::unique_ptr<Schedule>(std::move(schedule));
}

static Expected<std::unique_ptr<Schedule>> parseChained(const std::string &inner) {
  auto schedule = std::make_unique<Chained>();
  for (const std::string &text : splitParts(inner)) {
    Expected<std::unique_ptr<Schedule>> part = parsePart(text);
    if (!part)
      return part;
    schedule->parts.push_back(std::move(*part));
  }
  return std::unique_ptr<Schedule>(std::move(schedule));
}

Expected<std::unique_ptr<Schedule>> spmd::runtime::parseSchedule(const std::string &text) {
  auto inside = [&](const std::string &name) {
    bool is = text.rfind(name + "(", 0) == 0 && text.back() == ')';
    return is ? std::optional(text.substr(name.size() + 1, text.size() - name.size() - 2)) : std::nullopt;
  };
  if (std::optional<std::string> inner = inside("sequential"))
    return parseSequential(text, *inner);
  if (std::optional<std::string> inner = inside("chained"))
    return parseChained(*inner);
  if (size_t open = text.find('('); open != std::string::npos && text.back() != ')')
    return Status::badInput("schedule '" + text + "': expected ')' at the end, which closes " +
                            text.substr(0, open + 1));
  Arguments arguments(text);
  std::unique_ptr<Schedule> schedule = makeSimple(arguments);
  if (!schedule)
    return Status::badInput("schedule '" + text + "': '" + arguments.name +
                            "' is none; allowed: constant, linear, warmup, step, multistep, exponential, polynomial, "
                            "cosine, restarts, onecycle, sequential(A;STEP;B), chained(A;B)");
  if (Status status = arguments.finish(); !status.ok())
    return status;
  return schedule;
}

//===----------------------------------------------------------------------===//
// On a trainer
//===----------------------------------------------------------------------===//

Expected<ScheduledRates> ScheduledRates::create(const std::string &text, const Trainer &trainer, int64_t steps) {
  ScheduledRates rates;
  if (text.empty())
    return rates;
  const std::vector<HyperParameter> &hyper = trainer.manifest().hyper;
  auto has = [&](const std::string &name, int64_t group) {
    return std::any_of(hyper.begin(), hyper.end(),
                       [&](const HyperParameter &h) { return h.name == name && h.group == group; });
  };
  for (const HyperParameter &entry : hyper) {
    if (entry.name != "lr")
      continue;
    Expected<std::unique_ptr<Schedule>> schedule = parseSchedule(text);
    if (!schedule)
      return schedule.error();
    Group group{entry.group, {entry.value, entry.value}, "", std::move(*schedule)};
    group.schedule->begin(group.rate);
    if (group.schedule->momentum()) {
      group.momentum = has("betas.0", entry.group) ? "betas.0" : "momentum";
      if (!has(group.momentum, entry.group))
        return Status::badInput("schedule '" + text + "' moves the momentum, which is a constant of this artifact: " +
                                "capture the step with scheduled_options=[\"momentum\"] (of Adam: \"betas.0\"), or say "
                                "cycle_momentum=false");
    }
    if (std::optional<int64_t> most = group.schedule->steps(); most && steps > *most)
      return Status::badInput("schedule '" + text + "' has " + std::to_string(*most) + " steps, and the run " +
                              std::to_string(steps));
    rates.groups.push_back(std::move(group));
  }
  if (rates.groups.empty())
    return Status::badInput("--lr-schedule: the artifact has no learning rate");
  return rates;
}

Status ScheduledRates::apply(int64_t step, Trainer &trainer) {
  for (; at < step; ++at)
    for (Group &group : groups)
      if (at >= 0)
        group.schedule->step(group.rate);
  for (const Group &group : groups) {
    if (Status status = trainer.setHyper("lr", group.number, group.rate.value); !status.ok())
      return status;
    if (group.momentum.empty())
      continue;
    if (Status status = trainer.setHyper(group.momentum, group.number, *group.schedule->momentum()); !status.ok())
      return status;
  }
  return Status::success();
}
