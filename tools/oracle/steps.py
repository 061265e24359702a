"""The loss and the training steps of the recordings."""
import torch


def sum_of_losses(logits, labels):
    """Labels stand at the token that predicts them."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(),
                                             ignore_index=-100, reduction="sum")


def five_steps(model, loss_of, num_labels, after_backward=None):
    """Losses and gradient norms of five steps on the mean loss, clipped to 1, and the state after
    them. Of the vectors only a LLaVA-NeXT's newline decays."""
    decays = {True: [], False: []}
    for name, value in model.named_parameters():
        decays[value.dim() > 1 or name.endswith("image_newline")].append(value)
    optimizer = torch.optim.AdamW([{"params": decays[True], "weight_decay": 0.1},
                                   {"params": decays[False], "weight_decay": 0.0}],
                                  lr=0.01, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for _ in range(5):
        optimizer.zero_grad()
        loss = loss_of() / num_labels
        loss.backward()
        if after_backward:
            after_backward(model)
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        optimizer.step()
        losses.append(loss)
    state = {}
    for name, value in model.named_parameters():
        if value in optimizer.state:
            state[f"parameter/{name}"] = value
            state[f"first_moment/{name}"] = optimizer.state[value]["exp_avg"]
            state[f"second_moment/{name}"] = optimizer.state[value]["exp_avg_sq"]
    return {"losses": torch.stack(losses), "norms": torch.stack(norms)}, state
