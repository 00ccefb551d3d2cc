// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/host_probe.h"

#include <algorithm>
#include <utility>

#include "common/plan/exchange_cpu.h"
#include "trainer_function/training/probed_slice.h"

namespace lambdadnn {
namespace {

// The function that measures with this one is in the midst of a step, at most.
constexpr Duration kMeeting = std::chrono::seconds(2);
constexpr HostExchange kFour = {4, TransportKind::kDirect, 4};

double BesideStep(const HostCpuSeconds& all) { return std::max(0.0, all.iteration - all.step); }

// Places in ProbedPairs.
constexpr size_t kDirectFew = 0;
constexpr size_t kDirectMany = 1;
constexpr size_t kStoreFew = 2;
constexpr size_t kStoreMany = 3;
constexpr size_t kWorkerFew = 4;

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
      pairs_(ProbedPairs(parameters)),
      has_partner_(environment.peers.network != nullptr && !context.request.peers.empty()) {}

Status HostProbes::Measure(double step_cpu_seconds) {
  if (environment_.cpu_seconds() <= 0) return OkStatus();
  const PhaseScope scope(context_.phases, Phase::kMerge);
  LDNN_RETURN_IF_ERROR(MeasureHere(step_cpu_seconds, one_, &alone_));
  if (!environment_.peers.open_own) return OkStatus();
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (has_partner_) has_partner_ = MeasureApart(step_cpu_seconds, pairs_[i], &apart_[i]).ok();
    LDNN_RETURN_IF_ERROR(context_.interrupt.Check());
  }
  for (size_t i = 0; i < pairs_.size(); ++i) {
    // What four functions take is compared with the first. Within one process a worker's time is
    // not told from its server's.
    const bool can = pairs_[i].placement == Placement::kWorkers;
    if (i == kDirectFew || (can && !has_partner_)) {
      LDNN_RETURN_IF_ERROR(MeasureHere(step_cpu_seconds, pairs_[i], &here_[i]));
    }
  }
  return MeasureHere(step_cpu_seconds, kFour, &four_);
}

Status HostProbes::MeasureHere(double step_cpu_seconds, const HostExchange& exchange,
                               Measured* measured) {
  ProbedHosts hosts(context_, environment_, step_, step_cpu_seconds, exchange, std::nullopt);
  LDNN_ASSIGN_OR_RETURN(const HostCpuSeconds seconds, hosts.Measure());
  measured->Add(seconds);
  return OkStatus();
}

Status HostProbes::MeasureApart(double step_cpu_seconds, const HostExchange& exchange,
                                Measured* measured) {
  const HostApart apart = {0, exchanges_apart_++, context_.request.peers.front().address};
  ProbedHosts hosts(context_, environment_, step_, step_cpu_seconds, exchange, apart);
  LDNN_RETURN_IF_ERROR(hosts.Open());
  LDNN_RETURN_IF_ERROR(LookUntil(context_, kMeeting, [&hosts] { return hosts.IsConnected(); }));
  LDNN_ASSIGN_OR_RETURN(const HostCpuSeconds seconds, hosts.Measure());
  measured->Add(seconds);
  return OkStatus();
}

void HostProbes::Record(double step_cpu_seconds, SliceRecord* record) const {
  if (alone_.times == 0) return;
  auto& metrics = record->metrics;
  // A step that this disturbs is counted here.
  metrics["aloneCpuSeconds"] = std::max(0.0, alone_.Mean().iteration - step_cpu_seconds) *
                               static_cast<double>(parameters_) /
                               static_cast<double>(one_.elements);
  if (four_.times == 0) return;
  const bool apart = apart_.back().times > 0;
  const Pairs& pairs = apart ? apart_ : here_;
  RecordPair("directPair", kDirectFew, pairs, record);
  RecordPair("storePair", kStoreFew, pairs, record);
  if (apart) RecordPair("directWorker", kWorkerFew, apart_, record);
  // Of functions in one process as well, of which two took so much less than apart.
  const double two = BesideStep(here_[kDirectFew].Mean());
  const double factor = two > 0 ? BesideStep(pairs[kDirectFew].Mean()) / two : 1;
  metrics["directFourCpuSeconds"] = factor * BesideStep(four_.Mean());
  metrics["functionsApart"] = apart ? 1 : 0;
  if (!step_.run) return;
  const auto disturbed = [&](const Measured& many) {
    return std::max(0.0, many.Mean().step - step_cpu_seconds);
  };
  metrics["disturbedCpuSeconds"] =
      (disturbed(pairs[kDirectMany]) + disturbed(pairs[kStoreMany])) / 2;
}

void HostProbes::RecordPair(const std::string& name, size_t few_at, const Pairs& pairs,
                            SliceRecord* record) const {
  const double few = BesideStep(pairs[few_at].Mean());
  const double more = std::max(0.0, BesideStep(pairs[few_at + 1].Mean()) - few);
  const int64_t more_bytes = (pairs_[few_at + 1].elements - pairs_[few_at].elements) * kFloatBytes;
  record->metrics[name + "CpuSeconds"] = few;
  record->metrics[name + "CpuSecondsPerByte"] = more / static_cast<double>(more_bytes);
}

ProbePartner::ProbePartner(const RoleContext& context, const TrainingEnvironment& environment,
                           ProbedStep step, int64_t parameters)
    : context_(context),
      environment_(environment),
      step_(std::move(step)),
      pairs_(ProbedPairs(parameters)) {}

Status ProbePartner::Join(double step_cpu_seconds) {
  if (!next_.has_value()) {
    const HostExchange& exchange = pairs_[static_cast<size_t>(number_ % kProbedPairs)];
    next_.emplace(context_, environment_, step_, step_cpu_seconds, exchange,
                  HostApart{kPartnerRank, number_, {}});
    LDNN_RETURN_IF_ERROR(next_->Open());
  }
  if (!next_->IsConnected()) return OkStatus();
  (void)next_->Measure();
  next_.reset();
  ++number_;
  return context_.interrupt.Check();
}

}  // namespace lambdadnn
