// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/host_probe.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "common/base/statistics.h"
#include "common/plan/exchange_cpu.h"
#include "trainer_function/training/probed_slice.h"

namespace lambdadnn {
namespace {

// What takes longer, as under a small quota, is measured once.
constexpr double kLongRoundSeconds = 3;
// Functions that measure with this one are in the midst of a step, at most.
constexpr Duration kMeeting = std::chrono::seconds(2);

double BesideStep(const HostCpuSeconds& all) { return std::max(0.0, all.iteration - all.step); }

// Places in ProbedExchanges.
constexpr size_t kDirectFew = 0;
constexpr size_t kDirectMany = 1;
constexpr size_t kStoreFew = 2;
constexpr size_t kStoreMany = 3;
constexpr size_t kWorkerFew = 4;
constexpr size_t kServerFew = 6;
constexpr size_t kFourFew = 8;
constexpr size_t kServerOfThreeFew = 10;
constexpr size_t kStoreWorkerFew = 12;
constexpr size_t kStoreServerFew = 14;
constexpr size_t kStoreServerOfThreeFew = 16;
// Without so many at the head of an order the plan's exchange is not known.
constexpr size_t kNeeded = 4;

// The places in the order in which they are measured, which all functions follow: first what the
// plan of the request needs, since under a small quota there is no time for all.
std::array<size_t, kProbedExchanges> OrderOf(const AggregationPlan& plan) {
  struct Ways {
    std::vector<size_t> hosts;
    std::vector<size_t> served;
  };
  std::array<Ways, 2> of_transports = {
      {{{kDirectFew, kFourFew}, {kWorkerFew, kServerFew, kServerOfThreeFew}},
       {{kStoreFew}, {kStoreWorkerFew, kStoreServerFew, kStoreServerOfThreeFew}}}};
  if (plan.transport == TransportKind::kObjectStore) std::ranges::reverse(of_transports);
  std::array<size_t, kProbedExchanges> order{};
  size_t place = 0;
  for (Ways& ways : of_transports) {
    if (plan.placement == Placement::kDedicated) std::swap(ways.hosts, ways.served);
    for (const std::vector<size_t>& all : {ways.hosts, ways.served}) {
      for (const size_t few : all) {
        order[place++] = few;
        order[place++] = few + 1;
      }
    }
  }
  return order;
}

std::map<int, std::string> AddressesOf(const SliceRequest& request) {
  std::map<int, std::string> addresses;
  for (const Peer& peer : request.peers) addresses.emplace(peer.role.rank, peer.address);
  return addresses;
}

// Of how many functions exchanges are measured, that of this request included; all of them come to
// the same answer.
int FunctionsOf(const TrainingEnvironment& environment, const SliceRequest& request) {
  if (environment.peers.network == nullptr) return 1;
  const std::map<int, std::string> addresses = AddressesOf(request);
  const auto is_there = [&](int rank) {
    return rank == request.role().rank || addresses.contains(rank);
  };
  bool all = true;
  for (int rank = 1; rank < kMostProbedFunctions; ++rank) all = all && is_there(rank);
  if (all) return kMostProbedFunctions;
  return request.role().rank <= 1 && is_there(1) ? 2 : 1;
}

}  // namespace

void HostProbes::Measured::Add(const HostMeasurement& measurement) {
  sum.iteration += measurement.cpu.iteration;
  sum.step += measurement.cpu.step;
  ++times;
  if (!measurement.wait_seconds.has_value()) return;
  wait_seconds += *measurement.wait_seconds;
  ++waits;
}

HostProbes::HostProbes(const RoleContext& context, const TrainingEnvironment& environment,
                       ProbedStep step, int64_t parameters)
    : context_(context),
      environment_(environment),
      step_(std::move(step)),
      parameters_(parameters),
      one_{.functions = 1, .elements = std::clamp<int64_t>(parameters, 1, kMostHostElements)},
      exchanges_(ProbedExchanges(parameters)),
      order_(OrderOf(context.request.plan.aggregation)),
      functions_(FunctionsOf(environment, context.request)) {}

Status HostProbes::Measure(double step_cpu_seconds, double seconds) {
  if (environment_.cpu_seconds() <= 0 || took_long_) return OkStatus();
  const PhaseScope scope(context_.phases, Phase::kMerge);
  const Instant begin = context_.runtime.clock.Now();
  until_ = begin + FromSeconds(seconds);
  LDNN_RETURN_IF_ERROR(MeasureRound(step_cpu_seconds));
  took_long_ = ToSeconds(context_.runtime.clock.Now() - begin) > kLongRoundSeconds;
  return OkStatus();
}

Status HostProbes::MeasureRound(double step_cpu_seconds) {
  LDNN_RETURN_IF_ERROR(MeasureHere(step_cpu_seconds, one_, &alone_));
  if (!environment_.peers.open_own) return OkStatus();
  for (size_t place = 0; place < order_.size(); ++place) {
    const bool is_few = place % 2 == 0;  // the next one is of many elements
    if (is_few && place >= kNeeded && !IsTimeLeft()) break;
    if (exchanges_[order_[place]].functions > functions_) continue;
    if (!MeasureApart(step_cpu_seconds, place).ok()) functions_ = 1;
    LDNN_RETURN_IF_ERROR(context_.interrupt.Check());
  }
  ++rounds_;
  // What four take here is compared with what two do.
  if (functions_ == kMostProbedFunctions) return OkStatus();
  for (const size_t at : {kDirectFew, kDirectMany, kStoreFew, kStoreMany, kFourFew}) {
    if (functions_ > 1 && ((at != kDirectFew && at != kFourFew) || !IsTimeLeft())) continue;
    LDNN_RETURN_IF_ERROR(MeasureHere(step_cpu_seconds, exchanges_[at], &here_[at]));
  }
  return OkStatus();
}

Status HostProbes::MeasureHere(double step_cpu_seconds, const HostExchange& exchange,
                               Measured* measured) {
  ProbedHosts hosts(context_, environment_, step_, step_cpu_seconds, exchange, std::nullopt);
  LDNN_ASSIGN_OR_RETURN(const HostMeasurement measurement, hosts.Measure());
  measured->Add(measurement);
  return OkStatus();
}

Status HostProbes::MeasureApart(double step_cpu_seconds, size_t place) {
  const size_t at = order_[place];
  const HostApart apart = {0, rounds_ * kProbedExchanges + static_cast<int>(place),
                           AddressesOf(context_.request)};
  ProbedHosts hosts(context_, environment_, step_, step_cpu_seconds, exchanges_[at], apart);
  LDNN_RETURN_IF_ERROR(hosts.Open());
  LDNN_RETURN_IF_ERROR(LookUntil(context_, kMeeting, [&hosts] { return hosts.IsConnected(); }));
  LDNN_ASSIGN_OR_RETURN(const HostMeasurement measurement, hosts.Measure());
  apart_[at].Add(measurement);
  return OkStatus();
}

void HostProbes::Record(double step_cpu_seconds, SliceRecord* record) const {
  if (alone_.times == 0) return;
  auto& metrics = record->metrics;
  metrics["aloneCpuSeconds"] = BesideStep(alone_.Mean()) * static_cast<double>(parameters_) /
                               static_cast<double>(one_.elements);
  // Of both, of few elements and of many.
  const auto is_known = [](const Exchanges& measured, size_t few_at) {
    return measured[few_at + 1].times > 0;
  };
  const auto record_known = [&](const std::string& name, size_t few_at, const Exchanges& measured) {
    if (is_known(measured, few_at)) RecordBoth(name, few_at, measured, record);
    return is_known(measured, few_at);
  };
  const bool apart = is_known(apart_, kDirectFew);
  const Exchanges& pairs = apart ? apart_ : here_;
  record_known("directPair", kDirectFew, pairs);
  record_known("storePair", kStoreFew, is_known(apart_, kStoreFew) ? apart_ : here_);
  record_known("directWorker", kWorkerFew, apart_);
  record_known("directServer", kServerFew, apart_);
  record_known("directServerOfThree", kServerOfThreeFew, apart_);
  record_known("storeWorker", kStoreWorkerFew, apart_);
  record_known("storeServer", kStoreServerFew, apart_);
  record_known("storeServerOfThree", kStoreServerOfThreeFew, apart_);
  const auto is_measured = [](const Measured& exchange) { return exchange.times > 0; };
  metrics["functionsApart"] = std::ranges::any_of(apart_, is_measured) ? 2 : 0;
  if (record_known("directFour", kFourFew, apart_)) {
    metrics["functionsApart"] = kMostProbedFunctions;
  } else if (here_[kFourFew].times > 0 && pairs[kDirectFew].times > 0) {
    // Of functions in one process as well, of which two took so much less than apart.
    const double two = BesideStep(here_[kDirectFew].Mean());
    const double factor = two > 0 ? BesideStep(pairs[kDirectFew].Mean()) / two : 1;
    metrics["directFourCpuSeconds"] = factor * BesideStep(here_[kFourFew].Mean());
  }
  RecordWait(record);
  if (step_.run) RecordDisturbance(step_cpu_seconds, record);
}

// With a vector as large as the model, as far as they are measured.
void HostProbes::RecordWait(SliceRecord* record) const {
  const Measured& few = apart_[kDirectFew];
  const Measured& many = apart_[kDirectMany];
  if (few.waits == 0 || many.waits == 0) return;
  const double part =
      static_cast<double>(parameters_) / static_cast<double>(exchanges_[kDirectMany].elements);
  record->metrics["directPairWaitSeconds"] =
      std::lerp(few.wait_seconds / few.waits, many.wait_seconds / many.waits, std::min(1.0, part));
}

void HostProbes::RecordDisturbance(double step_cpu_seconds, SliceRecord* record) const {
  const auto first_of = [&](std::initializer_list<const Measured*> exchanges) {
    const auto known =
        std::ranges::find_if(exchanges, [](const Measured* of) { return of->times > 0; });
    return known == exchanges.end() ? nullptr : *known;
  };
  std::vector<double> seconds;
  // Over connections and through the store; of many elements.
  for (const Measured* const exchange :
       {first_of({&apart_[kFourFew + 1], &apart_[kDirectMany], &apart_[kWorkerFew + 1],
                  &here_[kDirectMany]}),
        first_of({&apart_[kStoreMany], &apart_[kStoreWorkerFew + 1], &here_[kStoreMany]})}) {
    if (exchange == nullptr) continue;
    seconds.push_back(exchange->Mean().step - step_cpu_seconds);
  }
  if (!seconds.empty()) record->metrics["disturbedCpuSeconds"] = std::max(0.0, Mean(seconds));
}

void HostProbes::RecordBoth(const std::string& name, size_t few_at, const Exchanges& measured,
                            SliceRecord* record) const {
  const double few = BesideStep(measured[few_at].Mean());
  const double more = std::max(0.0, BesideStep(measured[few_at + 1].Mean()) - few);
  const int64_t more_bytes =
      (exchanges_[few_at + 1].elements - exchanges_[few_at].elements) * kFloatBytes;
  record->metrics[name + "CpuSeconds"] = few;
  record->metrics[name + "CpuSecondsPerByte"] = more / static_cast<double>(more_bytes);
}

bool ProbePartner::Takes(const TrainingEnvironment& environment, const SliceRequest& request) {
  return request.role().rank > 0 && request.role().rank < FunctionsOf(environment, request);
}

ProbePartner::ProbePartner(const RoleContext& context, const TrainingEnvironment& environment,
                           ProbedStep step, int64_t parameters)
    : context_(context),
      environment_(environment),
      step_(std::move(step)),
      exchanges_(ProbedExchanges(parameters)),
      order_(OrderOf(context.request.plan.aggregation)),
      functions_(FunctionsOf(environment, context.request)) {}

Status ProbePartner::Join(double step_cpu_seconds) {
  const int rank = context_.request.role().rank;
  if (!next_.has_value()) {
    const auto exchange_of = [&](int number) -> const HostExchange& {
      return exchanges_[order_[static_cast<size_t>(number % kProbedExchanges)]];
    };
    const auto takes = [&](const HostExchange& exchange) {
      return rank < exchange.functions && exchange.functions <= functions_;
    };
    while (!takes(exchange_of(number_))) ++number_;
    next_.emplace(context_, environment_, step_, step_cpu_seconds, exchange_of(number_),
                  HostApart{rank, number_, AddressesOf(context_.request)});
    LDNN_RETURN_IF_ERROR(next_->Open());
  }
  if (!next_->IsConnected()) return OkStatus();
  (void)next_->Measure();
  next_.reset();
  ++number_;
  return context_.interrupt.Check();
}

}  // namespace lambdadnn
