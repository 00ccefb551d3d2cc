// SPDX-License-Identifier: Apache-2.0
#include "common/plan/number_fields.h"

#include <array>
#include <cmath>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

// The largest values are far beyond what there is, and so small that sums and products of a
// prediction stay finite.
struct UnitRange {
  Unit unit;
  const char* name;
  double most;
};
constexpr UnitRange kUnitRanges[] = {
    {Unit::kCount, "a count", 1e12},
    {Unit::kSeconds, "seconds", 1e9},
    {Unit::kBytes, "bytes", 1e18},
    {Unit::kBytesPerSecond, "bytes a second", 1e15},
    {Unit::kSamplesPerSecond, "samples a second", 1e15},
    {Unit::kMib, "MiB", 1e9},
    {Unit::kMilliCpu, "thousandths of a core", 1e9},
    {Unit::kShare, "a share", 1e9},
    {Unit::kMoney, "money", 1e9},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kUnitRanges); ++i) {
    if (static_cast<size_t>(kUnitRanges[i].unit) != i) return false;
  }
  return true;
}
static_assert(InOrder());

const UnitRange& RangeOf(Unit unit) { return kUnitRanges[static_cast<size_t>(unit)]; }

// The number that the members lead to, one inside the other.
template <typename Owner, auto... path>
struct Path {
  static void Set(Owner* owner, const OptionalQuantity& value) { ((*owner).*....*path) = value; }
  static OptionalQuantity Get(const Owner& owner) { return (owner.*....*path); }
};
template <auto... path>
constexpr ProfileNumber OfProfile(const char* name, Unit unit, Zero zero = Zero::kValue) {
  using Members = Path<WorkloadProfile, path...>;
  return {name, unit, zero, Members::Set, Members::Get};
}
template <auto... path>
constexpr PlatformNumber OfPlatform(const char* name, Unit unit, Zero zero = Zero::kValue) {
  using Members = Path<Platform, path...>;
  return {name, unit, zero, Members::Set, Members::Get};
}

using Profile = WorkloadProfile;

constexpr ProfileNumber kProfileDecimals[] = {
    OfProfile<&Profile::iteration_overhead_seconds>("iterationOverheadSeconds", Unit::kSeconds),
    OfProfile<&Profile::merge_bytes_per_second>("mergeBytesPerSecond", Unit::kBytesPerSecond,
                                                Zero::kNotStated),
    OfProfile<&Profile::cold_start_seconds>("coldStartSeconds", Unit::kSeconds),
    OfProfile<&Profile::cold_start_deviation_seconds>("coldStartDeviationSeconds", Unit::kSeconds),
    OfProfile<&Profile::release_seconds>("releaseSeconds", Unit::kSeconds),
    OfProfile<&Profile::slice_overhead_seconds>("sliceOverheadSeconds", Unit::kSeconds),
    OfProfile<&Profile::checkpoint_seconds>("checkpointSeconds", Unit::kSeconds),
    OfProfile<&Profile::checkpoint_cpu_seconds>("checkpointCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::iteration_cpu_seconds>("iterationCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::disturbed_cpu_seconds>("disturbedCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::start_cpu_seconds>("startCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::load_cpu_seconds_per_sample>("loadCpuSecondsPerSample", Unit::kSeconds),
    OfProfile<&Profile::update_cpu_seconds_per_byte>("updateCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::finish_cpu_seconds>("finishCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::store_bytes_per_second>("storeBytesPerSecond", Unit::kBytesPerSecond,
                                                Zero::kNotStated),
    OfProfile<&Profile::store_request_seconds>("storeRequestSeconds", Unit::kSeconds,
                                               Zero::kNotStated),
    OfProfile<&Profile::store_deviation_seconds>("storeDeviationSeconds", Unit::kSeconds),
    OfProfile<&Profile::transfer, &TransferCpu::push_seconds>("pushCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::transfer, &TransferCpu::push_seconds_per_byte>("pushCpuSecondsPerByte",
                                                                       Unit::kSeconds),
    OfProfile<&Profile::transfer, &TransferCpu::pull_seconds>("pullCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::transfer, &TransferCpu::pull_seconds_per_byte>("pullCpuSecondsPerByte",
                                                                       Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::cpu, &TransferCpu::push_seconds>(
        "directPushCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::cpu, &TransferCpu::push_seconds_per_byte>(
        "directPushCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::cpu, &TransferCpu::pull_seconds>(
        "directPullCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::cpu, &TransferCpu::pull_seconds_per_byte>(
        "directPullCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::send_seconds>("directSendCpuSeconds",
                                                               Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::send_seconds_per_byte>(
        "directSendCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::hop_seconds>("directSeconds", Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::deviation_seconds>("directDeviationSeconds",
                                                                    Unit::kSeconds),
    OfProfile<&Profile::direct, &DirectTransfer::bytes_per_second>("directBytesPerSecond",
                                                                   Unit::kBytesPerSecond),
    OfProfile<&Profile::direct, &DirectTransfer::pair_wait_seconds>("directPairWaitSeconds",
                                                                    Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::alone_seconds>("aloneCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::pair_seconds>("directPairCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::pair_seconds_per_byte>("directPairCpuSecondsPerByte",
                                                               Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::four_seconds>("directFourCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::four_seconds_per_byte>("directFourCpuSecondsPerByte",
                                                               Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::worker_seconds>("directWorkerCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::worker_seconds_per_byte>("directWorkerCpuSecondsPerByte",
                                                                 Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::server_seconds>("directServerCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::server_seconds_per_byte>("directServerCpuSecondsPerByte",
                                                                 Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::server_of_three_seconds>("directServerOfThreeCpuSeconds",
                                                                 Unit::kSeconds),
    OfProfile<&Profile::host, &HostCpu::server_of_three_seconds_per_byte>(
        "directServerOfThreeCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::pair_seconds>("storePairCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::pair_seconds_per_byte>("storePairCpuSecondsPerByte",
                                                                     Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::worker_seconds>("storeWorkerCpuSeconds",
                                                              Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::worker_seconds_per_byte>(
        "storeWorkerCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::server_seconds>("storeServerCpuSeconds",
                                                              Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::server_seconds_per_byte>(
        "storeServerCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::server_of_three_seconds>(
        "storeServerOfThreeCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::store_host, &HostCpu::server_of_three_seconds_per_byte>(
        "storeServerOfThreeCpuSecondsPerByte", Unit::kSeconds),
    OfProfile<&Profile::doorbell, &DoorbellCpu::send_seconds>("doorbellSendCpuSeconds",
                                                              Unit::kSeconds),
    OfProfile<&Profile::doorbell, &DoorbellCpu::receive_seconds>("doorbellReceiveCpuSeconds",
                                                                 Unit::kSeconds),
    OfProfile<&Profile::miss, &PollCost::seconds>("missSeconds", Unit::kSeconds),
    OfProfile<&Profile::miss, &PollCost::cpu_seconds>("missCpuSeconds", Unit::kSeconds),
    OfProfile<&Profile::worker_bytes_per_sample>("workerBytesPerSample", Unit::kBytes),
    OfProfile<&Profile::loaded_bytes_per_sample>("loadedBytesPerSample", Unit::kBytes),
    OfProfile<&Profile::stream_requests_per_sample>("streamRequestsPerSample", Unit::kShare),
    OfProfile<&Profile::stream_bytes_per_sample>("streamBytesPerSample", Unit::kBytes),
    OfProfile<&Profile::stream_cpu_seconds_per_sample>("streamCpuSecondsPerSample", Unit::kSeconds),
    OfProfile<&Profile::stream_seconds_per_sample>("streamSecondsPerSample", Unit::kSeconds),
    OfProfile<&Profile::open_requests>("openRequests", Unit::kShare),
    OfProfile<&Profile::open_lists>("openLists", Unit::kShare),
    OfProfile<&Profile::load_requests_per_sample>("loadRequestsPerSample", Unit::kShare),
    OfProfile<&Profile::residual>("residual", Unit::kShare),
    OfProfile<&Profile::run, &RunFactors::compute>("runComputeFactor", Unit::kShare),
    OfProfile<&Profile::run, &RunFactors::evaluation>("runEvaluationFactor", Unit::kShare),
    OfProfile<&Profile::run, &RunFactors::alone>("runAloneFactor", Unit::kShare),
    OfProfile<&Profile::run, &RunFactors::store>("runStoreFactor", Unit::kShare),
    OfProfile<&Profile::run, &RunFactors::store_workers>("runStoreWorkersFactor", Unit::kShare),
    OfProfile<&Profile::run, &RunFactors::direct>("runDirectFactor", Unit::kShare),
    OfProfile<&Profile::run, &RunFactors::direct_workers>("runDirectWorkersFactor", Unit::kShare),
};

constexpr ProfileNumber kProfileWholes[] = {
    OfProfile<&Profile::training_bytes>("trainingBytes", Unit::kBytes),
    OfProfile<&Profile::model_bytes>("modelBytes", Unit::kBytes),
    OfProfile<&Profile::buffer_bytes>("bufferBytes", Unit::kBytes),
    OfProfile<&Profile::evaluation_samples>("evaluationSamples", Unit::kCount),
};

constexpr ProfileNumber kProfileMemory[] = {
    OfProfile<&Profile::worker_base_memory_mib>("workerBaseMemory", Unit::kMib),
    OfProfile<&Profile::worker_least_memory_mib>("workerLeastMemory", Unit::kMib),
};

using Prices = Platform::Prices;
using NodeHour = Prices::NodeHour;

constexpr PlatformNumber kPlatformNumbers[] = {
    OfPlatform<&Platform::milli_cpu_per_gib>("milliCpuPerGiB", Unit::kMilliCpu, Zero::kNotStated),
    OfPlatform<&Platform::cpu_period_seconds>("cpuPeriodSeconds", Unit::kSeconds),
    OfPlatform<&Platform::cpu_burst_seconds>("cpuBurstSeconds", Unit::kSeconds),
    OfPlatform<&Platform::pod_start_cpu_seconds>("podStartCpuSeconds", Unit::kSeconds),
    OfPlatform<&Platform::total_milli_cpu>("totalMilliCpu", Unit::kMilliCpu, Zero::kNotStated),
    OfPlatform<&Platform::total_memory_mib>("totalMemory", Unit::kMib, Zero::kNotStated),
    OfPlatform<&Platform::total_gpus>("gpus", Unit::kCount),
    OfPlatform<&Platform::sidecar_memory_mib>("sidecarMemory", Unit::kMib),
    OfPlatform<&Platform::function_timeout_seconds>("functionTimeoutSeconds", Unit::kSeconds),
    OfPlatform<&Platform::function_network_bytes_per_second>(
        "function.networkBytesPerSecond", Unit::kBytesPerSecond, Zero::kNotStated),
    OfPlatform<&Platform::parameter_server_network_bytes_per_second>(
        "parameterServer.networkBytesPerSecond", Unit::kBytesPerSecond, Zero::kNotStated),
    OfPlatform<&Platform::parameter_server_price_per_second>("parameterServer.pricePerSecond",
                                                             Unit::kMoney),
    OfPlatform<&Platform::store_bytes_per_second>("store.bytesPerSecond", Unit::kBytesPerSecond,
                                                  Zero::kNotStated),
    OfPlatform<&Platform::store_request_seconds>("store.requestSeconds", Unit::kSeconds,
                                                 Zero::kNotStated),
    OfPlatform<&Platform::prices, &Prices::gib_second>("prices.gibSecond", Unit::kMoney),
    OfPlatform<&Platform::prices, &Prices::vcpu_second>("prices.vcpuSecond", Unit::kMoney),
    OfPlatform<&Platform::prices, &Prices::gpu_second>("prices.gpuSecond", Unit::kMoney),
    OfPlatform<&Platform::prices, &Prices::put_request>("prices.putRequest", Unit::kMoney),
    OfPlatform<&Platform::prices, &Prices::get_request>("prices.getRequest", Unit::kMoney),
    OfPlatform<&Platform::prices, &Prices::invocation>("prices.invocation", Unit::kMoney),
    OfPlatform<&Platform::prices, &Prices::node_hour, &NodeHour::price>("prices.nodeHour.price",
                                                                        Unit::kMoney),
    OfPlatform<&Platform::prices, &Prices::node_hour, &NodeHour::milli_cpu>("prices.nodeHour.cores",
                                                                            Unit::kMilliCpu),
    OfPlatform<&Platform::prices, &Prices::node_hour, &NodeHour::memory_mib>(
        "prices.nodeHour.memory", Unit::kMib),
};

template <typename Owner>
std::optional<std::string> FirstProblem(const Owner& owner, const std::string& what,
                                        std::span<const NumberField<Owner>> fields) {
  for (const NumberField<Owner>& field : fields) {
    const std::string problem = ProblemOf(field.get(owner), field.unit);
    if (!problem.empty()) return what + "." + field.name + " " + problem;
  }
  return std::nullopt;
}

std::optional<std::string> ProblemOfRate(const TrainingRate& rate, const std::string& what) {
  // A line may have any sign.
  for (const auto& [name, value] :
       {std::pair("slope", rate.slope), {"intercept", rate.intercept}}) {
    const std::string problem = ProblemOf(std::abs(value), Unit::kSamplesPerSecond);
    if (!problem.empty()) return what + "." + name + " " + problem;
  }
  double previous = 0;
  for (size_t i = 0; i < rate.table.size(); ++i) {
    const TrainingRate::Point& point = rate.table[i];
    const std::string place = what + ".table[" + std::to_string(i) + "]";
    if (!(point.memory_mib > previous)) {
      return place + ".memory is " + FormatDouble(point.memory_mib) + " MiB, and must be above " +
             FormatDouble(previous) + "; sort the table by memory";
    }
    previous = point.memory_mib;
    const std::string problem = ProblemOf(point.samples_per_second, Unit::kSamplesPerSecond);
    if (!problem.empty()) return place + ".samplesPerSecond " + problem;
  }
  if (rate.max_samples_per_second) {
    const std::string problem = ProblemOf(*rate.max_samples_per_second, Unit::kSamplesPerSecond);
    if (!problem.empty()) return what + ".maxSamplesPerSecond " + problem;
  }
  return std::nullopt;
}

std::optional<std::string> ProblemOfStreams(const WorkloadProfile& profile,
                                            const std::string& what) {
  double previous = 0;
  for (const WorkloadProfile::StorePoint& point : profile.store_streams) {
    const std::string name = what + ".storeStreams of " + FormatDouble(point.streams) + " streams ";
    if (!(point.streams > previous)) {
      return name + "comes after " + FormatDouble(previous) + "; sort the list by streams";
    }
    previous = point.streams;
    std::string problem = ProblemOf(point.bytes_per_second, Unit::kBytesPerSecond);
    if (point.bytes_per_second == 0) problem = "has no bandwidth; correct it or leave it out";
    if (!problem.empty()) return name + problem;
  }
  return std::nullopt;
}

}  // namespace

std::string ProblemOf(double value, Unit unit) {
  const UnitRange& range = RangeOf(unit);
  if (value >= 0 && value <= range.most) return "";
  return "is " + FormatDouble(value) + ", and must be " + range.name + " from 0 to " +
         FormatDouble(range.most) + "; correct it or leave it out";
}

std::string ProblemOfStoreLine(const Platform& platform) {
  const double slope = platform.function_store_slope;
  const double intercept = platform.function_store_intercept;
  for (const double value : {slope, intercept}) {
    std::string problem = ProblemOf(std::abs(value), Unit::kBytesPerSecond);
    if (!problem.empty()) return problem;
  }
  if (slope == 0 && intercept == 0) return "";
  const Platform::Memory& memory = platform.memory;
  const double best = slope * (slope > 0 ? memory.max_mib : memory.min_mib) + intercept;
  if (best > 0) return "";
  return "is " + FormatDouble(best) + " bytes a second at best, for functions of " +
         std::to_string(memory.min_mib) + " to " + std::to_string(memory.max_mib) +
         " MiB, and must be above 0; correct slope or intercept";
}

std::span<const ProfileNumber> ProfileDecimals() { return kProfileDecimals; }
std::span<const ProfileNumber> ProfileWholes() { return kProfileWholes; }
std::span<const PlatformNumber> PlatformNumbers() { return kPlatformNumbers; }

std::optional<std::string> ProblemOf(const WorkloadProfile& profile, const std::string& what) {
  const auto samples = static_cast<double>(profile.training_samples);
  if (const std::string problem = ProblemOf(samples, Unit::kCount); !problem.empty()) {
    return what + ".trainingSamples " + problem;
  }
  for (const auto fields :
       {ProfileDecimals(), ProfileWholes(), std::span<const ProfileNumber>(kProfileMemory)}) {
    if (auto problem = FirstProblem(profile, what, fields)) return problem;
  }
  if (auto problem = ProblemOfStreams(profile, what)) return problem;
  if (auto problem = ProblemOfRate(profile.training_rate, what + ".trainingRate")) return problem;
  return ProblemOfRate(profile.evaluation_rate, what + ".evaluationRate");
}

std::optional<std::string> ProblemOf(const Platform& platform, const std::string& what) {
  const Platform::Memory& memory = platform.memory;
  if (memory.max_mib < memory.min_mib) {
    return what + ".memory.max is " + std::to_string(memory.max_mib) +
           " MiB, and must not be below min, which is " + std::to_string(memory.min_mib) +
           " MiB; correct one of them";
  }
  if (auto problem = FirstProblem(platform, what, PlatformNumbers())) return problem;
  const std::string problem = ProblemOfStoreLine(platform);
  if (problem.empty()) return std::nullopt;
  return what + ".function.storeBytesPerSecond " + problem;
}

}  // namespace lambdadnn
