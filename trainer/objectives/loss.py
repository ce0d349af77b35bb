"""The loss of one micro-batch of completion tokens."""

from dataclasses import dataclass

from torch import Tensor

from trainer.objectives.corrections import correction_weights
from trainer.objectives.kl import kl_loss, kl_report
from trainer.objectives.objective import Objective
from trainer.objectives.ratio import bounded_exp, spread_log
from trainer.objectives.surrogates import surrogate


@dataclass(frozen=True)
class TokenBatch:
    """The ``N`` completion tokens of one micro-batch; every completion is whole.

    ``logp_N`` carries the gradient. ``old_logp_N`` is the trainer's figure for the policy that
    sampled (``logp_N.detach()`` where one update is taken per rollout), ``sampler_logp_N`` the
    sampler's. ``weight_N`` comes from :func:`trainer.objectives.weights.token_weights`.
    ``completion_N`` (int64) numbers the micro-batch's completions from 0.
    """

    logp_N: Tensor
    old_logp_N: Tensor
    sampler_logp_N: Tensor
    advantage_N: Tensor
    weight_N: Tensor
    completion_N: Tensor
    reference_logp_N: Tensor | None = None


@dataclass(frozen=True)
class LossOutput:
    """The loss to differentiate, and figures per token for reports, detached.

    Figures of whole completions stand at each of their tokens. ``ratio_N`` is π/π_old at the
    objective's level, ``correction_N`` the sampler's weight (0 where ``kept_N`` is false), ``kl_N``
    the distance to the reference in nats (k3), where there is a reference.
    """

    loss: Tensor
    ratio_N: Tensor
    clipped_low_N: Tensor
    clipped_high_N: Tensor
    correction_N: Tensor
    kept_N: Tensor
    kl_N: Tensor | None


def policy_loss(tokens: TokenBatch, objective: Objective) -> LossOutput:
    """``L = Σ_t w_t · [ c_t · surrogate(r_t, A_t) + β · kl_t ]``.

    ``r`` is π/π_old of the token or of its completion, ``c`` corrects for the sampler (the penalty
    stays outside of it, as in TRL), ``w`` holds the mean that the objective takes. Losses and
    gradients of an update's micro-batches add up to those of the update.
    """
    log_ratio_N = tokens.logp_N - tokens.old_logp_N
    ratio_N = bounded_exp(spread_log(log_ratio_N, tokens.completion_N, objective.ratio))
    term = surrogate(ratio_N, tokens.logp_N, tokens.advantage_N, objective)
    correction = correction_weights(
        tokens.old_logp_N, tokens.sampler_logp_N, tokens.completion_N, objective.correction
    )
    # All factors are finite for finite log-probabilities; what is not shows in the loss.
    per_token_N = correction.weight_N * term.loss_N
    reference_logp_N = tokens.reference_logp_N
    kl_N = None
    if reference_logp_N is not None:
        kl_N = kl_report(tokens.logp_N, reference_logp_N)
        if objective.kl_in_loss:
            penalty_N = kl_loss(
                tokens.logp_N,
                reference_logp_N,
                ratio_N,
                estimator=objective.kl.estimator,
                weighted=objective.kl.weighted,
            )
            per_token_N = per_token_N + objective.kl.coefficient * penalty_N
    return LossOutput(
        loss=(tokens.weight_N * per_token_N).sum(),
        ratio_N=ratio_N.detach(),
        clipped_low_N=term.clipped_low_N,
        clipped_high_N=term.clipped_high_N,
        correction_N=correction.weight_N,
        kept_N=correction.kept_N,
        kl_N=kl_N,
    )
