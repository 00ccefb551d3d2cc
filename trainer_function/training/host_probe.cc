// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/host_probe.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/plan/exchange_cpu.h"
#include "trainer_function/training/probed_slice.h"

namespace lambdadnn {
namespace {

// What takes longer under a small quota is measured once.
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

void HostProbes::Measured::Add(const HostCpuSeconds& seconds) {
  sum.iteration += seconds.iteration;
  sum.step += seconds.step;
  ++times;
}

HostProbes::HostProbes(const RoleContext& context, const TrainingEnvironment& environment,
                       ProbedStep step, int64_t parameters)
    : context_(context),
      environment_(environment),
      step_(std::move(step)),
      parameters_(parameters),
      one_{.functions = 1, .elements = std::clamp<int64_t>(parameters, 1, kMostHostElements)},
      exchanges_(ProbedExchanges(parameters)),
      functions_(FunctionsOf(environment, context.request)) {}

Status HostProbes::Measure(double step_cpu_seconds) {
  if (environment_.cpu_seconds() <= 0 || longest_seconds_ > kLongRoundSeconds) return OkStatus();
  const PhaseScope scope(context_.phases, Phase::kMerge);
  const Instant begin = context_.runtime.clock.Now();
  LDNN_RETURN_IF_ERROR(MeasureRound(step_cpu_seconds));
  longest_seconds_ = std::max(longest_seconds_, ToSeconds(context_.runtime.clock.Now() - begin));
  return OkStatus();
}

Status HostProbes::MeasureRound(double step_cpu_seconds) {
  LDNN_RETURN_IF_ERROR(MeasureHere(step_cpu_seconds, one_, &alone_));
  if (!environment_.peers.open_own) return OkStatus();
  for (size_t at = 0; at < exchanges_.size(); ++at) {
    if (exchanges_[at].functions > functions_) continue;
    if (!MeasureApart(step_cpu_seconds, at).ok()) functions_ = 1;
    LDNN_RETURN_IF_ERROR(context_.interrupt.Check());
  }
  ++rounds_;
  // What four take here is compared with what two do.
  if (functions_ == kMostProbedFunctions) return OkStatus();
  for (const size_t at : {kDirectFew, kDirectMany, kStoreFew, kStoreMany, kFourFew}) {
    if (functions_ > 1 && at != kDirectFew && at != kFourFew) continue;
    LDNN_RETURN_IF_ERROR(MeasureHere(step_cpu_seconds, exchanges_[at], &here_[at]));
  }
  return OkStatus();
}

Status HostProbes::MeasureHere(double step_cpu_seconds, const HostExchange& exchange,
                               Measured* measured) {
  ProbedHosts hosts(context_, environment_, step_, step_cpu_seconds, exchange, std::nullopt);
  LDNN_ASSIGN_OR_RETURN(const HostCpuSeconds seconds, hosts.Measure());
  measured->Add(seconds);
  return OkStatus();
}

Status HostProbes::MeasureApart(double step_cpu_seconds, size_t at) {
  const HostApart apart = {0, rounds_ * kProbedExchanges + static_cast<int>(at),
                           AddressesOf(context_.request)};
  ProbedHosts hosts(context_, environment_, step_, step_cpu_seconds, exchanges_[at], apart);
  LDNN_RETURN_IF_ERROR(hosts.Open());
  LDNN_RETURN_IF_ERROR(LookUntil(context_, kMeeting, [&hosts] { return hosts.IsConnected(); }));
  LDNN_ASSIGN_OR_RETURN(const HostCpuSeconds seconds, hosts.Measure());
  apart_[at].Add(seconds);
  return OkStatus();
}

void HostProbes::Record(double step_cpu_seconds, SliceRecord* record) const {
  if (alone_.times == 0) return;
  auto& metrics = record->metrics;
  // A step that this disturbs is counted here.
  metrics["aloneCpuSeconds"] = std::max(0.0, alone_.Mean().iteration - step_cpu_seconds) *
                               static_cast<double>(parameters_) /
                               static_cast<double>(one_.elements);
  const bool apart = apart_[kStoreMany].times > 0;
  const Exchanges& pairs = apart ? apart_ : here_;
  if (pairs[kStoreMany].times == 0) return;
  RecordBoth("directPair", kDirectFew, pairs, record);
  RecordBoth("storePair", kStoreFew, pairs, record);
  const auto record_apart = [&](const std::string& name, size_t few_at) {
    const bool known = apart_[few_at + 1].times > 0;
    if (known) RecordBoth(name, few_at, apart_, record);
    return known;
  };
  record_apart("directWorker", kWorkerFew);
  record_apart("directServer", kServerFew);
  metrics["functionsApart"] = apart ? 2 : 0;
  if (record_apart("directFour", kFourFew)) {
    metrics["functionsApart"] = kMostProbedFunctions;
  } else if (here_[kFourFew].times > 0) {
    // Of functions in one process as well, of which two took so much less than apart.
    const double two = BesideStep(here_[kDirectFew].Mean());
    const double factor = two > 0 ? BesideStep(pairs[kDirectFew].Mean()) / two : 1;
    metrics["directFourCpuSeconds"] = factor * BesideStep(here_[kFourFew].Mean());
  }
  if (!step_.run) return;
  const auto disturbed = [&](const Measured& many) {
    return std::max(0.0, many.Mean().step - step_cpu_seconds);
  };
  const Measured& four = apart_[kFourFew + 1];
  const Measured& direct = four.times > 0 ? four : pairs[kDirectMany];
  metrics["disturbedCpuSeconds"] = (disturbed(direct) + disturbed(pairs[kStoreMany])) / 2;
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
      functions_(FunctionsOf(environment, context.request)) {}

Status ProbePartner::Join(double step_cpu_seconds) {
  const int rank = context_.request.role().rank;
  if (!next_.has_value()) {
    const auto exchange_of = [&](int number) -> const HostExchange& {
      return exchanges_[static_cast<size_t>(number % kProbedExchanges)];
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
